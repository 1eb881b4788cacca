// How Fleet knows what it says of a task: the evidence behind its status.
import { html } from "../vendor/preact.js";
import { call } from "../call.js";
import { Facts, Panel } from "../parts/data.js";
import { usePolled } from "../parts/poll.js";
import { Ago, Fix, lasted, Loading, Status } from "../parts/show.js";

/** @typedef {import("../api.d.ts").TaskDetail} Detail */
/** @typedef {import("../api.d.ts").TaskRow} TaskRow */

const EVERY = 2000;

/** @param {{ row: TaskRow, detail: Detail }} props */
export default function Explain({ row, detail }) {
  return html`<div class="explain">
    <${Standing} row=${row} detail=${detail} />
    ${row.state === "running" && html`<${Sight} row=${row} />`}
    ${detail.waits.length > 0 && html`<${Panel} title="What it waits for"><ul class="waits">${detail.waits.map((wait) =>
      html`<li key=${wait.code + wait.why}><span class="tag">${wait.code.replaceAll("_", " ")}</span> <bdi>${wait.why}</bdi>${wait.fix && html`<${Fix} fix=${wait.fix} />`}</li>`)}</ul><//>`}
    ${detail.runs.length > 0 && html`<${Panel} title="How each run ended"><ol class="endings">${[...detail.runs].reverse().map((run) =>
      html`<li key=${run.id}><code>${run.id}</code> <b>${run.ending || run.state}</b> <small>${lasted(run.started_at || run.claimed_at, run.ended_at)} on <bdi>${run.host}</bdi></small>
        ${run.detail && html`<p><bdi>${run.detail}</bdi></p>`}</li>`)}</ol><//>`}
  </div>`;
}

/** What each status means. @type {Record<string, string>} */
const MEANS = {
  ready: "It starts as soon as a machine has room.",
  waiting: "It starts when what it waits for is done.",
  children: "It is done when its children are.",
  postponed: "It starts again at a time that was set: after a limit, or a failed attempt.",
  assigned: "A member has taken it, and no supervisor starts it.",
  starting: "A supervisor has claimed it and prepares its workspace.",
  running: "Its agent is at work.",
  stopping: "A person or an agent has asked it to stop.",
  asking: "It has an open question, and goes on when that is answered.",
  paused: "It was paused.",
  held: "It came from someone whose tasks a lead lets run.",
  review: "Its gate passed, and a person looks at it before it counts as done.",
  failed: "It used up its attempts.",
  done: "Its gate passed; its work is on its branch.",
  landing: "Its work waits to land.",
  landed: "Its work is on the branch where it belongs.",
  beaten: "Another solution of the same work was picked.",
  cancelled: "It was cancelled.",
};

/** @param {{ row: TaskRow, detail: Detail }} props */
const Standing = ({ row, detail }) =>
  html`<${Panel} title="Status" actions=${html`<${Status} status=${row.status} />`}>
    <div class="inside"><p>${MEANS[row.status] || ""}</p>
      <${Facts} facts=${[
        ["State in the store", row.state],
        ["Changed", html`<${Ago} at=${detail.updated_at} />`],
        ["Why", detail.why && html`<bdi>${detail.why}</bdi>`],
        ["Failed attempts", detail.failures > 0 && String(detail.failures)],
      ]} /></div><//>`;

/** What its agent does now, and by what that is known. @param {{ row: TaskRow }} props */
function Sight({ row }) {
  const { data } = usePolled(() => call("agent.look", { tasks: [row.id] }), EVERY, [row.id]);
  if (!data) return html`<${Loading} rows=${2} />`;
  const [seen] = data;
  return html`<${Panel} title="Its agent now" actions=${seen && html`<span class="tag busy">${seen.doing}</span>`}>
    <div class="inside">${!seen ? html`<p class="soft">Its run is on another machine, or has just ended.</p>` : html`<${Facts} facts=${[
      ["Known by", html`<bdi>${seen.by}</bdi>`],
      ["Asks for", seen.asks && html`<bdi>${seen.asks}</bdi>`],
      ["Its screen", seen.screen && html`<bdi>${seen.screen}</bdi>`],
      ["Exit status", seen.exit],
      ["Processor", seen.cpu !== null && `${seen.cpu} % of a core`],
      ["Memory", seen.memory && `${Math.round(seen.memory / 1e6)} MB`],
      ["Run", html`<code>${seen.run}</code>`],
    ]} />`}</div><//>`;
}
