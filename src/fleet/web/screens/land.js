// Landing: the trains and what is tested now, what waits, and what has landed and why.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { act, call } from "../call.js";
import { Badge, Panel, Table } from "../parts/data.js";
import { ask, confirm, Dialog } from "../parts/dialog.js";
import { duration, last, money } from "../parts/format.js";
import { useFed, usePolled } from "../parts/poll.js";
import { Ago, Command, Empty, Icon, lasted, Loading, Status, Trouble } from "../parts/show.js";
import { sendBack } from "../parts/verdict.js";
import { heard, may } from "../store.js";

/** @typedef {import("../api.d.ts").LandingRow} Landing */
/** @typedef {import("../api.d.ts").TrainRow} Train */
/** @typedef {import("../api.d.ts").CandidateRow} Candidate */
/** @typedef {import("../api.d.ts").ContenderRow} Contender */

const EVERY = 3000;
const OFTEN = 1000;

export default function Land() {
  const { data, error, again: ask } = useFed("land");
  const past = usePolled(() => call("land.list", { all: true, limit: 100 }), 30_000);
  const [open, setOpen] = useState("");
  const fact = heard.value.findLast((event) => event.type.startsWith("land") || event.type === "task.landed");
  const again = () => {
    ask();
    past.again();
  };
  useEffect(past.again, [fact]);
  if (error && !data) return html`<${Trouble} error=${error} again=${again} />`;
  if (!data) return html`<${Loading} rows=${4} />`;
  /** @type {Train[]} */
  const trains = data.trains;
  /** @type {Landing[]} */
  const waiting = data.landings;
  const landed = (past.data || []).filter((row) => row.state === "landed");
  return html`<section class="land" aria-labelledby="land-title">
    <div class="head"><h1 id="land-title">Land</h1><span class="grow"></span></div>
    ${!trains.length && !waiting.length && !landed.length && html`<${Empty} icon="land" title="Nothing is to land">
      <p>When a task is done, queue its work: it lands once its gate passes on what the branch has become.</p><${Command} command="fleet land t-1" /><//>`}
    ${trains.map((train) => html`<${TrainPanel} key=${`${train.repository} ${train.onto}`} train=${train} rows=${waiting.filter((row) => row.onto === train.onto)} again=${again} open=${setOpen} />`)}
    ${landed.length > 0 && html`<${Landed} rows=${landed} open=${setOpen} again=${again} />`}
    <${Races} />
    <${Forecast} />
    ${open && html`<${Evidence} id=${open} close=${() => setOpen("")} />`}
  </section>`;
}

/** @param {string} path */
const repositoryOf = (path) => path.replace(/\/\.git\/?$/, "").split("/").pop() || path;

/** @param {{ train: Train, rows: Landing[], again: () => void, open: (id: string) => void }} props */
function TrainPanel({ train, rows, again, open }) {
  const some = train.candidates || [];
  const turn = async () => {
    if (await act(train.paused ? "land.resume" : "land.pause", { onto: train.onto }, train.paused ? "Landing goes on." : "Nothing lands until you resume it.")) again();
  };
  const state = train.stopped ? ["bad", "stopped"] : train.paused ? ["warn", "paused"] : some.length ? ["busy", "testing"] : rows.length ? ["plain", "waiting"] : ["good", "idle"];
  return html`<${Panel} title=${html`${repositoryOf(train.repository)} <span class="arrow">→</span> ${train.onto}`} label=${`The train to ${train.onto}`}
    actions=${html`<span class=${`status ${state[0]}`}><i></i>${state[1]}</span>${may("merge") && html`<button onClick=${turn}>${train.paused ? "Resume" : "Pause"}</button>`}`}>
    ${train.stopped && html`<p class="inside bad" role="alert"><bdi>${train.stopped}</bdi></p>`}
    ${train.paused && html`<p class="inside warn-text">Paused by ${train.paused}.</p>`}
    ${train.waits && html`<p class="inside soft"><bdi>${train.waits}</bdi></p>`}
    ${some.length > 0 && html`<${Candidates} rows=${some} />`}
    <${Table} label=${`Waiting to land on ${train.onto}`} rows=${rows} id=${(/** @type {Landing} */ row) => row.id} columns=${columns(again, open)}
      empty=${html`<p class="inside soft">Nothing waits. ${train.rate !== undefined && train.rate < 100 ? `Of the last landings ${train.rate} % passed.` : ""}</p>`} />
    ${train.flaky && html`<p class="inside warn-text">This gate failed and then passed on the same files: <code>${train.flaky}</code></p>`}
  <//>`;
}

/** What is tested now, and what one gate of it prints: the first that runs, or the chosen one. @param {{ rows: Candidate[] }} props */
function Candidates({ rows }) {
  const [chosen, choose] = useState("");
  const running = rows.filter((row) => row.gate && row.members.length);
  const one = running.find((row) => row.gate === chosen) || running[0];
  return html`<ol class="train" aria-label="Candidates">${rows.map((row, at) => html`<li key=${row.commit || at} class=${`candidate ${row.state}`} aria-current=${one === row ? "true" : undefined}>
      <span class="position">${at + 1}</span><div><b>${row.tasks.map((task) => html`<a key=${task} class="linked" href=${`/t/${task}`}>${task}</a> `)}</b>
      <small><${Status} status=${row.state} />${row.began ? html` ${lasted(row.began)}` : ""}${row.tree ? html` <code>${row.tree.slice(0, 10)}</code>` : ""}</small></div>
      ${running.length > 1 && row.gate && html`<button class="quiet" aria-pressed=${one === row} aria-label=${`What the gate of ${row.tasks.join(", ")} prints`} onClick=${() => choose(row.gate || "")}><${Icon} name="terminal" /></button>`}</li>`)}</ol>
    ${one && html`<${GateLines} key=${one.gate} landing=${one.members[0]} gate=${one.gate || ""} label=${`What the gate of ${one.tasks.join(", ")} prints`} />`}`;
}

const MOST_LINES = 400;

/** What a gate prints, while it does: from near its end, followed there. @param {{ landing: string, gate: string, label: string }} props */
function GateLines({ landing, gate, label }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const read = useRef({ offset: -8192, lines: /** @type {string[]} */ ([]) });
  const { data, error } = usePolled(async () => {
    const next = await call("land.output", { landing, gate, offset: read.current.offset });
    if (next.gate === gate) read.current = { offset: next.offset, lines: [...read.current.lines, ...next.lines].slice(-MOST_LINES) };
    return read.current.lines;
  }, OFTEN, [gate]);
  const lines = (data || []).join("\n");
  useEffect(() => {
    const element = box.current;
    if (element && element.scrollHeight - element.scrollTop - element.clientHeight < 80) element.scrollTop = element.scrollHeight;
  }, [lines]);
  if (error && !data) return html`<p class="inside soft">${error.message}</p>`;
  return html`<pre class="output live" ref=${box} role="log" tabindex="0" aria-label=${label}>${data && !lines ? "It has printed nothing yet." : lines}</pre>`;
}

/** @param {() => void} again @param {(id: string) => void} open */
function columns(again, open) {
  const then = async (/** @type {any} */ name, /** @type {any} */ fields, /** @type {string} */ done) => (await act(name, fields, done)) && again();
  const hold = async (/** @type {Landing} */ row) => {
    const why = await ask({ title: `Hold ${row.id}`, field: "Why", yes: "Hold" });
    if (why !== null) then("land.hold", { landing: row.id, why }, `${row.id} waits until it is released.`);
  };
  const drop = async (/** @type {Landing} */ row) =>
    (await confirm({ title: `Drop ${row.id}?`, text: `${row.task} stays done, and its work stays on its branch.`, yes: "Drop", danger: true })) &&
    then("land.drop", { landing: row.id }, `${row.id} does not land.`);
  return [
    { name: "Landing", of: (/** @type {Landing} */ row) => html`<button class="quiet id" onClick=${() => open(row.id)}>${row.id}</button>` },
    { name: "Task", wide: true, of: (/** @type {Landing} */ row) => html`<a class="linked" href=${`/t/${row.task}`}>${row.task}</a> <bdi>${row.title}</bdi><${Pull} row=${row} />${row.why && html`<small class="detail"><bdi>${row.why}</bdi></small>`}` },
    { name: "State", of: (/** @type {Landing} */ row) => html`<${Status} status=${row.gate || row.state} />${row.returns > 0 && html` <${Badge} tone="warn">came back ${row.returns === 1 ? "once" : `${row.returns} times`}<//>`}` },
    { name: "Queued", extra: true, of: (/** @type {Landing} */ row) => html`<${Ago} at=${row.at} />` },
    ...(may("merge") ? [{ name: "Do", doing: true, of: (/** @type {Landing} */ row) => html`<span class="row-acts">
      ${row.ahead ? html`<button onClick=${() => then("land.move", { landing: row.id }, `${row.id} is first.`)}>First</button>` : ""}
      ${row.state === "held" ? html`<button onClick=${() => then("land.release", { landing: row.id }, `${row.id} is queued again.`)}>${row.returns ? "Try again" : "Release"}</button>` : html`<button onClick=${() => hold(row)}>Hold</button>`}
      <button onClick=${() => sendBack(row.task, { about: row.why }).then((done) => done && again())} aria-label=${`Send ${row.task} back`}>Send back</button>
      <button class="quiet" onClick=${() => drop(row)}>Drop</button></span>` }] : []),
  ];
}

/** Its pull request, on its forge. @param {{ row: Landing }} props */
function Pull({ row }) {
  if (!/^https?:/i.test(row.pull || "")) return null;
  return html` <a class="linked" href=${row.pull} target="_blank" rel="noopener noreferrer">pull request ${last(row.pull || "")}</a>`;
}

/** @param {Landing} row @param {() => void} again */
async function undo(row, again) {
  const text = `A commit that takes ${row.task} out of ${row.onto} is queued to land, and tested like any other.`;
  if (!(await confirm({ title: `Undo ${row.id}?`, text, yes: "Undo", danger: true }))) return;
  if (await act("land.undo", { landing: row.id }, `${row.task} is being taken out of ${row.onto}.`)) again();
}

/** @param {{ rows: Landing[], open: (id: string) => void, again: () => void }} props */
const Landed = ({ rows, open, again }) => html`<${Panel} title="Landed"><${Table} label="Landed" rows=${rows} id=${(/** @type {Landing} */ row) => row.id} columns=${[
  { name: "Landing", of: (/** @type {Landing} */ row) => html`<button class="quiet id" onClick=${() => open(row.id)}>${row.id}</button>` },
  { name: "Task", wide: true, of: (/** @type {Landing} */ row) => html`<a class="linked" href=${`/t/${row.task}`}>${row.task}</a> <bdi>${row.title}</bdi><${Pull} row=${row} />` },
  { name: "Onto", extra: true, of: (/** @type {Landing} */ row) => row.onto },
  { name: "Commit", extra: true, of: (/** @type {Landing} */ row) => html`<code>${row.commit.slice(0, 10)}</code>` },
  { name: "Because", extra: true, of: (/** @type {Landing} */ row) => html`<small class="nowrap">${row.evidence?.rule || (row.force && `forced: ${row.force}`) || ""}</small>` },
  { name: "When", of: (/** @type {Landing} */ row) => html`<${Ago} at=${row.evidence?.at || row.at} />` },
  ...(may("merge") ? [{ name: "Do", doing: true, of: (/** @type {Landing} */ row) => html`<button class="quiet" aria-label=${`Undo ${row.id}`} onClick=${() => undo(row, again)}>Undo</button>` }] : []),
]} /><//>`;

/** @type {Record<string, string>} */
const RACES = { running: "busy", picked: "good", asks: "warn", nobody: "bad" };
const RACE_WORDS = /** @type {Record<string, string>} */ ({ running: "running", picked: "picked", asks: "you decide", nobody: "none can win" });

/** Several solutions of the same work, what was measured of each, and the rule that decided. */
function Races() {
  const { data, again } = usePolled(() => call("race.list", {}), 5000);
  const pick = async (/** @type {string} */ batch, /** @type {string} */ winner) => {
    if (!(await confirm({ title: `Pick ${winner}?`, text: "The others stay on their branches.", yes: "Pick it" }))) return;
    if (await act("race.pick", { batch, winner }, `${winner} is picked.`)) again();
  };
  return (data || []).map((race) => html`<${Panel} key=${race.batch} label=${race.title} title=${html`<a class="linked" href=${`/t/${race.batch}`}>${race.batch}</a> <bdi>${race.title}</bdi>`}
      actions=${html`<span class=${`status ${RACES[race.state] || "plain"}`}><i></i>${RACE_WORDS[race.state] || race.state}</span>`}>
    ${race.why && html`<p class="inside"><b>${race.winner}</b> ${race.by && `picked by ${race.by}: `}<bdi>${race.why}</bdi></p>`}
    <${Table} label=${race.title} rows=${race.contenders} id=${(/** @type {Contender} */ row) => row.task} columns=${contenderColumns(race, pick)} /><//>`);
}

/** @param {import("../api.d.ts").RaceRow} race @param {(batch: string, winner: string) => void} pick */
const contenderColumns = (race, pick) => [
  { name: "Task", wide: true, of: (/** @type {Contender} */ row) => html`<a class="linked" href=${`/t/${row.task}`}>${row.task}</a> ${row.agent}${row.model && html` <small>${row.model}</small>`}${row.task === race.winner && html` <${Badge} tone="good">winner<//>`}${row.why && html`<small class="detail"><bdi>${row.why}</bdi></small>`}` },
  { name: "State", of: (/** @type {Contender} */ row) => html`<${Status} status=${row.status} />` },
  { name: "Gate", of: (/** @type {Contender} */ row) => row.own || "–" },
  { name: "On main", extra: true, of: (/** @type {Contender} */ row) => row.main || "–" },
  { name: "Others' tests", extra: true, of: (/** @type {Contender} */ row) => row.cross || "–" },
  { name: "Lines", number: true, extra: true, of: (/** @type {Contender} */ row) => row.size.lines },
  { name: "Took", number: true, extra: true, of: (/** @type {Contender} */ row) => row.took ? duration(row.took / 1e6) : "–" },
  { name: "Cost", number: true, extra: true, of: (/** @type {Contender} */ row) => money(row.cost) || "–" },
  ...(may("assign") && race.state === "asks" ? [{ name: "Do", doing: true, of: (/** @type {Contender} */ row) => html`<button onClick=${() => pick(race.batch, row.task)} aria-label=${`Pick ${row.task}`}>Pick</button>` }] : []),
];

/** Which of the live branches would conflict. */
function Forecast() {
  const { data } = usePolled(() => call("land.forecast", {}), 15_000);
  const rivals = (data || []).filter((row) => row.conflicts.length || row.rivals.length);
  if (!rivals.length) return null;
  return html`<${Panel} title="Conflicts ahead"><${Table} label="Conflicts ahead" rows=${rivals} id=${(/** @type {any} */ row) => row.task} columns=${[
    { name: "Task", wide: true, of: (/** @type {any} */ row) => html`<a class="linked" href=${`/t/${row.task}`}>${row.task}</a> <bdi>${row.title}</bdi>` },
    { name: "With", of: (/** @type {any} */ row) => row.rivals.length ? row.rivals.map((/** @type {string} */ id) => html`<a key=${id} class="linked" href=${`/t/${id}`}>${id}</a> `) : row.onto },
    { name: "Files", extra: true, of: (/** @type {any} */ row) => html`<small><bdi>${row.conflicts.slice(0, 5).join(", ")}</bdi></small>` },
  ]} /><//>`;
}

/** What was tested, and how that went. @param {{ id: string, close: () => void }} props */
function Evidence({ id, close }) {
  const { data, error } = usePolled(() => call("land.show", { landing: id }), EVERY, [id]);
  const proof = data?.evidence;
  return html`<${Dialog} title=${id} close=${close} wide>
    ${error && html`<${Trouble} error=${error} />`}${!data && !error && html`<${Loading} rows=${2} />`}
    ${data && html`<p><a class="linked" href=${`/t/${data.task}`} onClick=${close}>${data.task}</a> <bdi>${data.title}</bdi> → ${data.onto} <${Status} status=${data.gate || data.state} /></p>
      ${data.why && html`<p><bdi>${data.why}</bdi></p>`}
      ${proof && html`<p>${proof.rule}</p><dl class="facts-list">
        ${proof.gate && html`<div><dt>Gate</dt><dd><code>${proof.gate}</code></dd></div>`}
        <div><dt>Passed</dt><dd>${proof.passed} of ${proof.passed + proof.failed}, ${duration(proof.took / 1e6)}</dd></div>
        <div><dt>Tree</dt><dd><code>${proof.tree.slice(0, 16)}</code></dd></div><div><dt>Merged onto</dt><dd><code>${proof.before.slice(0, 16)}</code></dd></div>
        ${data.commit && html`<div><dt>Commit</dt><dd><code>${data.commit.slice(0, 16)}</code></dd></div>`}</dl>
        ${proof.output && html`<pre class="output" tabindex="0">${proof.output}</pre>`}`}`}
  <//>`;
}
