// One machine: what keeps runs from starting there, and the runs that it has.
import { html } from "../vendor/preact.js";
import { call } from "../call.js";
import { Facts, Panel, Table } from "./data.js";
import { Dialog } from "./dialog.js";
import { usePolled } from "./poll.js";
import { Ago, Fix, lasted, Loading, Trouble } from "./show.js";

/** @typedef {import("../api.d.ts").HostRun} HostRun */
/** @typedef {import("../api.d.ts").HostCheck} Check */

const EVERY = 3000;
/** @type {Record<string, string>} */
const TONES = { ok: "good", warning: "warn", bad: "bad" };

/** @param {{ host: string, close: () => void }} props */
export default function Host({ host, close }) {
  const { data, error, again } = usePolled(() => Promise.all([call("host.show", { host }), call("host.doctor", { host })]), EVERY, [host]);
  return html`<${Dialog} title=${`Machine ${data?.[0].host.name || host}`} close=${close} wide>
    ${error && html`<${Trouble} error=${error} again=${again} />`}${!data && !error && html`<${Loading} rows=${2} />`}
    ${data && html`<${About} detail=${data[0]} checks=${data[1]} close=${close} />`}<//>`;
}

/** @param {{ detail: import("../api.d.ts").HostDetail, checks: Check[], close: () => void }} props */
const About = ({ detail: { host, at_work: runs }, checks, close }) => html`
  <${Facts} facts=${[
    ["Host", html`<code>${host.id}</code>`],
    ["Release", host.release],
    ["Labels", (host.labels || []).join(", ")],
    ["Heard of", html`<${Ago} at=${host.seen_at} /> ago`],
    ["Its runs", host.awake && html`are its own until ${new Date(host.lease_until).toLocaleTimeString([], { hour12: false })}, and longer while it is heard of`],
  ]} />
  <${Panel} title="What was checked"><ul class="checks">${checks.map((each, at) => html`<li key=${at} class="inside"><span class=${`status ${TONES[each.state] || "plain"}`}><i></i>${each.check}</span>
    <bdi>${each.message}</bdi>${each.fix && html`<${Fix} fix=${each.fix} />`}</li>`)}</ul><//>
  <${Panel} title="Runs"><${Table} label="Runs" rows=${runs} id=${(/** @type {HostRun} */ row) => row.run} columns=${[
    { name: "Task", wide: true, of: (/** @type {HostRun} */ row) => html`<a class="linked" href=${`/t/${row.task}`} onClick=${close}>${row.task}</a> <bdi>${row.title}</bdi>` },
    { name: "For", number: true, of: (/** @type {HostRun} */ row) => lasted(row.since) },
    { name: "Others may take it", extra: true, of: (/** @type {HostRun} */ row) => row.elsewhere_from ? `from ${new Date(row.elsewhere_from).toLocaleTimeString([], { hour12: false })}` : "–" },
  ]} empty=${html`<p class="inside soft">It has none.</p>`} /><//>`;
