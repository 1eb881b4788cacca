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
  const { data: gates } = useLoaded(() => call("task.gates", { task }), [task, detail.runs.length, detail.task.status]);
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
    <${Gantt} detail=${detail} events=${events} gates=${gates || []} />
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

const LEGEND = [["prepare", "prepared"], ["busy", "at work"], ["good", "done"], ["warn", "asked"], ["bad", "failed"], ["gate", "gate"]];

/** @typedef {{ tone: string, from: number, to: number, what: string }} Part */

/** A run: what was prepared, the work, its gate at the end. @param {Detail["runs"][0]} run @param {number} gate seconds @returns {Part[]} */
function partsOf(run, gate) {
  const claimed = Date.parse(run.claimed_at);
  const started = Date.parse(run.started_at || run.claimed_at);
  const to = Date.parse(run.ended_at || "") || Date.now();
  const tested = Math.max(started, to - gate * 1000);
  const tone = !run.ended_at ? "busy" : run.ending === "succeeded" ? "good" : run.ending === "asked" ? "warn" : "bad";
  return [
    { tone: "prepare", from: claimed, to: started, what: "prepared" },
    { tone, from: started, to: tested, what: "worked" },
    ...(gate ? [{ tone: "gate", from: tested, to, what: "gate" }] : []),
  ];
}

/** From when its work was queued to when it landed. @param {EventRow[]} events newest first @returns {Part[]} */
function landingOf(events) {
  const first = events.findLast((event) => event.type === "landing.queued");
  if (!first) return [];
  const last = events.find((event) => event.type === "task.landed");
  return [{ tone: last ? "good" : "busy", from: Date.parse(first.at), to: last ? Date.parse(last.at) : Date.now(), what: last ? "landed" : "waits to land" }];
}

/** Each run, and the landing, as a bar between the first and the last moment. @param {{ detail: Detail, events: EventRow[], gates: import("../api.d.ts").GateRow[] }} props */
function Gantt({ detail, events, gates }) {
  const lanes = detail.runs.slice(-12).map((run) => ({ name: run.id, parts: partsOf(run, gates.find((gate) => gate.run === run.id)?.seconds || 0) }));
  if (!lanes.length) return null;
  const landing = landingOf(events);
  if (landing.length) lanes.push({ name: "landing", parts: landing });
  const from = Math.min(...lanes.map((lane) => lane.parts[0].from));
  const until = Math.max(...lanes.map((lane) => lane.parts[lane.parts.length - 1].to), from + 1000);
  const part = (/** @type {number} */ at) => ((at - from) / (until - from)) * 100;
  const words = (/** @type {number} */ start, /** @type {number} */ end) => lasted(new Date(start).toISOString(), new Date(end).toISOString());
  return html`<div class="gantt">
    ${lanes.map(({ name, parts }) => {
      const end = parts[parts.length - 1].to;
      const told = parts.filter((each) => each.to > each.from).map((each) => `${each.what} ${words(each.from, each.to)}`).join(", ");
      return html`<div class="lane" key=${name} role="img" aria-label=${`${name}: ${told}`}><code>${name}</code><span>${parts.map((each) =>
        html`<i class=${each.tone} title=${`${each.what} ${words(each.from, each.to)}`} style=${{ left: `${part(each.from)}%`, width: `max(2px, ${part(each.to) - part(each.from)}%)` }}></i>`)}</span>
        <small>${words(parts[0].from, end)}</small></div>`;
    })}
    <p class="legend">${LEGEND.map(([tone, word]) => html`<span><i class=${tone}></i>${word}</span>`)}</p></div>`;
}
