// What happened to a task, newest first, grouped by run, with the time between two facts.
import { html, useState } from "../vendor/preact.js";
import { call, complain } from "../call.js";
import { Ago, Empty, lasted, Loading, Trouble, useLoaded } from "../parts/show.js";
import { heard } from "../store.js";

/** @typedef {import("../api.d.ts").EventRow} EventRow */
/** @typedef {import("../api.d.ts").TaskDetail} Detail */

const PAGE = 100;

/** @type {[RegExp, string][]} */
const TONES = [
  [/failed|lost|refused|returned|dropped/, "bad"], [/done|settled|landed|answered|passed|permitted/, "good"],
  [/asked|paused|held|stopping|limited|wants/, "warn"], [/started|claimed|resumed|retried/, "busy"],
];

/** @param {string} type */
const toneOf = (type) => TONES.find(([test]) => test.test(type))?.[1] || "plain";

/** `task.added` is "Task added". @param {string} type */
export function named(type) {
  const words = type.replace(/[._]/g, " ");
  return words[0].toUpperCase() + words.slice(1);
}

/** @param {{ detail: Detail }} props */
export default function Timeline({ detail }) {
  const task = detail.task.id;
  const newest = heard.value.findLast((event) => event.task === task);
  const { data, error, again } = useLoaded(() => call("task.events", { task, limit: PAGE }), [task, newest]);
  const [older, setOlder] = useState(/** @type {EventRow[]} */ ([]));
  const [ended, setEnded] = useState(false);
  if (error && !data) return html`<${Trouble} error=${error} again=${again} />`;
  if (!data) return html`<${Loading} rows=${5} />`;
  const events = [...data, ...older.filter((event) => event.number < (data.at(-1)?.number || 0))];
  const more = async () => {
    try {
      const page = await call("task.events", { task, limit: PAGE, before: events.at(-1)?.number });
      setOlder([...older, ...page]);
      setEnded(page.length < PAGE);
    } catch (failure) {
      complain(failure);
    }
  };
  if (!events.length) return html`<${Empty} icon="clock" title="Nothing happened yet" />`;
  return html`<div class="timeline" tabindex="0" role="region" aria-label="Timeline">
    <${Gantt} detail=${detail} />
    <ol>${events.map((event, at) => html`<${Fact} key=${event.number} event=${event} before=${events[at + 1]} first=${event.run !== events[at - 1]?.run} />`)}</ol>
    ${data.length === PAGE && !ended && html`<button onClick=${more}>Earlier</button>`}
  </div>`;
}

/** @param {{ event: EventRow, before?: EventRow, first: boolean }} props */
function Fact({ event, before, first }) {
  const more = Object.entries(event.data).filter(([, value]) => value !== "" && value !== null);
  return html`<li class=${toneOf(event.type)}>
    ${first && html`<span class="of-run">${event.run || "Task"}</span>`}
    <i></i><div><b>${named(event.type)}</b> <span class="soft">by <bdi>${event.actor}</bdi></span>
      ${more.length > 0 && html`<span class="data">${more.map(([name, value]) => html`<span class="chip"><bdi>${name}: ${String(typeof value === "object" ? JSON.stringify(value) : value).slice(0, 200)}</bdi></span>`)}</span>`}</div>
    <span class="when"><${Ago} at=${event.at} />${before && html`<small title="since the fact before">+${lasted(before.at, event.at)}</small>`}</span></li>`;
}

/** Each run as a bar between the first and the last moment. @param {{ detail: Detail }} props */
function Gantt({ detail }) {
  const runs = detail.runs.slice(-12);
  if (!runs.length) return null;
  const from = Date.parse(runs[0].claimed_at);
  const until = Math.max(...runs.map((run) => Date.parse(run.ended_at || "") || Date.now()), from + 1000);
  const part = (/** @type {number} */ at) => ((at - from) / (until - from)) * 100;
  return html`<div class="gantt" role="img" aria-label=${`${runs.length} runs in ${lasted(runs[0].claimed_at, new Date(until).toISOString())}`}>
    ${runs.map((run) => {
      const begun = Date.parse(run.claimed_at);
      const worked = Date.parse(run.started_at || run.claimed_at);
      const end = Date.parse(run.ended_at || "") || Date.now();
      const tone = run.ended_at ? (run.ending === "succeeded" ? "good" : run.ending === "asked" ? "warn" : "bad") : "busy";
      return html`<div class="lane" key=${run.id}><code>${run.id}</code><span>
        <i class="prepare" style=${{ left: `${part(begun)}%`, width: `${Math.max(0.4, part(worked) - part(begun))}%` }}></i>
        <i class=${tone} style=${{ left: `${part(worked)}%`, width: `${Math.max(0.8, part(end) - part(worked))}%` }}></i></span>
        <small>${lasted(run.claimed_at, run.ended_at)}</small></div>`;
    })}</div>`;
}
