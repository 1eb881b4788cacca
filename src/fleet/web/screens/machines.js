// The machines: the nodes and what is in their memory, where requests go and why, and the hosts.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { act, call, complain } from "../call.js";
import { useKeys } from "../keys.js";
import { Badge, Meter, Panel, Stat, Stats, Switch, Table } from "../parts/data.js";
import { useFed, usePolled } from "../parts/poll.js";
import { Ago, Command, Empty, Icon, Loading, short, Trouble, usePart } from "../parts/show.js";
import { watch } from "../live.js";
import { query } from "../router.js";
import { connection, inbox, may, now } from "../store.js";

/** @typedef {import("../api.d.ts").NodesRow} Nodes */
/** @typedef {import("../api.d.ts").NodeRow} Node */
/** @typedef {import("../api.d.ts").TraceRow} Trace */

const MOST = 200; // traces that are shown

export default function Machines() {
  const fed = useFed("nodes");
  const { error, again } = fed;
  const data = fed.data?.nodes;
  useKeys([{ key: "w", what: "Warm all models", run: () => may("spawn") && warm({}, again) }], []);
  if (error && !data) return html`<${Trouble} error=${error} again=${again} />`;
  if (!data) return html`<${Loading} rows=${4} />`;
  return html`<section class="machines" aria-labelledby="machines-title">
    <div class="head"><h1 id="machines-title">Machines</h1><span class="soft">${data.fleet}</span><span class="grow"></span>
      ${may("spawn") && data.nodes.length > 0 && html`<button onClick=${() => warm({}, again)}>Warm all models<kbd>w</kbd></button>`}</div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${data.nodes.length ? html`<${Fleet} data=${data} gateway=${fed.data.gateway} again=${again} />` : html`<${NoNodes} />`}
    <${Hosts} rows=${fed.data.hosts} limits=${fed.data.limits} again=${again} />
  </section>`;
}

const NoNodes = () =>
  html`<${Empty} icon="machines" title="No nodes are declared">
    <p>Name the machines that serve models under <code>nodes:</code> in fleet.yaml.</p><${Command} command="fleet init" /><//>`;

/** @param {{ data: Nodes, gateway: import("../api.d.ts").GatewayRow, again: () => void }} props */
function Fleet({ data, gateway, again }) {
  const up = data.nodes.filter((node) => node.status === "online").length;
  const speed = data.nodes.flatMap((node) => node.relay?.servings || []).filter((each) => each.busy)
    .reduce((sum, each) => sum + each.decode * each.busy, 0);
  const waiting = (data.relay?.waiting || []).reduce((sum, each) => sum + each.requests, 0);
  const down = data.nodes.length - up;
  const traces = useTraces();
  return html`
    <${Stats} label="The nodes together">
      <${Stat} name="Nodes up" value=${`${up} of ${data.nodes.length}`} tone=${down ? "bad" : "good"} />
      <${Stat} name="Requests at work" value=${data.relay ? data.relay.active : "–"} note=${waiting > 0 ? `${waiting} wait` : ""} tone=${waiting ? "warn" : ""} />
      <${Stat} name="Speed now" value=${speed ? `${Math.round(speed)} tok/s` : "–"} />
      <${Stat} name="Answered" value=${data.relay ? short(data.relay.served) : "–"} note=${data.relay ? html`since <${Since} at=${data.relay.since} />` : "the relay is not running"} />
    <//>
    <div class="nodes">${[...data.nodes].sort((one, other) => urgency(one) - urgency(other)).map((node) => html`<${NodeCard} key=${node.name} node=${node} data=${data} again=${again} />`)}</div>
    <${Routes} data=${data} traces=${traces || []} />
    <${Traces} rows=${traces} nodes=${data.nodes.map((node) => node.name)} />
    <${Gateway} data=${gateway} />`;
}

/** @param {{ at: string }} props */
const Since = ({ at }) => html`<span><${Ago} at=${at} /> ago</span>`;

/** @param {{ model?: string, node?: string }} wanted @param {() => void} again */
async function warm(wanted, again) {
  await act("model.warm", wanted, wanted.node ? `Loading the models of ${wanted.node}.` : "Loading the models.");
  again();
}

/** How a node is, in one word and its colour. @param {Node} node @returns {[string, string]} */
function health(node) {
  if (node.status === "offline" || node.relay?.breaker === "open") return ["down", "bad"];
  if (node.relay?.breaker === "gentle" || node.relay?.breaker === "probing") return ["coming back", "warn"];
  return node.status === "online" ? ["up", "good"] : ["not asked", "plain"];
}

/** Among many nodes, those in trouble come first. @param {Node} node */
const urgency = (node) => ["bad", "warn"].indexOf(health(node)[1]) + 1 || 3;

/** @param {{ node: Node, data: Nodes, again: () => void }} props */
function NodeCard({ node, data, again }) {
  const [word, tone] = health(node);
  const why = node.relay?.why || node.error;
  const probe = node.relay?.next_probe;
  const used = node.resident.reduce((sum, each) => sum + (each.memory || 0), 0);
  const warming = data.warming?.filter((row) => row.node === node.name) || [];
  const loading = warming.some((row) => row.state === "loading" || row.state === "waiting");
  const behind = inbox.value?.find((item) => item.kind === "node" && (item.title === node.name || item.id === `node:${node.endpoint}:down`))?.behind || 0;
  const asked = new URLSearchParams(query.value).get("node") === node.name;
  const card = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (asked) card.current?.scrollIntoView({ block: "center" });
  }, [asked]);
  return html`<article ref=${card} class=${`node ${tone}`} data-asked=${asked || undefined} aria-label=${node.name}>
    <header><h2>${node.name}</h2><span class=${`status ${tone}`}><i></i>${word}</span></header>
    <p class="soft">${[node.kind, node.version, node.latency_ms !== null && `${Math.round(node.latency_ms)} ms`].filter(Boolean).join(" · ")}</p>
    ${(tone === "bad" || (tone === "warn" && why)) && html`<p class=${`reason ${tone}`} role="status"><bdi>${why || "It does not answer."}</bdi>${probe ? html` <span class="soft">Next look in ${Math.ceil(probe)} s.</span>` : ""}
      ${behind > 0 && html`<b> ${behind} ${behind === 1 ? "task waits" : "tasks wait"} for it.</b>`}</p>`}
    ${node.busy !== null && tone !== "bad" && html`<div class="gauge"><span>Requests</span><b class="number">${node.busy}${node.slots ? ` of ${node.slots}` : ""}${node.waiting ? html` <span class="warn-text">+${node.waiting} waiting</span>` : ""}</b>
      ${node.slots && html`<${Meter} value=${node.busy} max=${node.slots} tone=${node.waiting ? "warn" : "busy"} label=${`Slots of ${node.name} in use`} />`}</div>`}
    ${node.memory > 0 && node.status !== "offline" && html`<div class="gauge"><span>Memory</span><b class="number">${Math.round((used / node.memory) * 100)} %</b>
      <${Meter} value=${used} max=${node.memory} label=${`Memory of ${node.name} in use`} /></div>`}
    <${Models} node=${node} />
    ${warming.map((row) => html`<${Warming} key=${row.upstream} row=${row} />`)}
    ${may("spawn") && html`<footer><button onClick=${() => warm({ node: node.name }, again)} disabled=${loading} aria-label=${`Warm ${node.name}`}>${loading ? "Loading …" : "Warm"}</button></footer>`}
  </article>`;
}

/** @param {number} bytes */
const gigabytes = (bytes) => `${(bytes / 1e9).toFixed(bytes < 1e10 ? 1 : 0)} GB`;

/** What it holds: first what is in memory. @param {{ node: Node }} props */
function Models({ node }) {
  const paces = new Map((node.relay?.servings || []).map((each) => [each.upstream, each]));
  const cold = node.models.filter((name) => !node.loaded_models.includes(name));
  return html`<ul class="models">
    ${node.resident.map((each) => html`<li key=${each.name}><${Badge} tone="good">in memory<//><span class="name">${each.name}</span>
      <small>${[each.memory && gigabytes(each.memory), each.context && `${short(each.context)} context`, paces.get(each.name)?.decode && `${Math.round(paces.get(each.name)?.decode || 0)} tok/s`].filter(Boolean).join(" · ")}</small></li>`)}
    ${cold.slice(0, 6).map((name) => html`<li key=${name}><${Badge}>on disk<//><span class="name">${name}</span></li>`)}
    ${cold.length > 6 && html`<li class="soft">and ${cold.length - 6} more</li>`}</ul>`;
}

/** @param {{ row: import("../api.d.ts").WarmRow }} props */
function Warming({ row }) {
  if (row.state === "ok") return html`<p class="warming good-text"><${Icon} name="check" />${row.upstream} is in memory, ${row.seconds.toFixed(1)} s</p>`;
  if (row.state === "failed") return html`<p class="warming bad" role="status">${row.upstream}: <bdi>${row.why}</bdi></p>`;
  return html`<p class="warming" role="status">${row.upstream}: ${row.state === "loading" ? `loading, ${Math.round(row.seconds)} s` : "waits"}
    <progress class="bar busy" aria-label=${`Loading ${row.upstream}`}></progress></p>`;
}

/** Where an agent's last request went, and what the relay expected of that. @param {{ trace?: Trace }} props */
function LastChoice({ trace }) {
  if (!trace?.node) return null;
  const terms = trace.estimates.find((each) => each.node === trace.node);
  return html`<small class="last-choice">last: ${trace.node}${terms && `, expected ${seconds(terms.total)} (${termsOf(terms)})`}, took ${seconds(trace.total)}</small>`;
}

/** @param {import("../api.d.ts").TermsRow} terms */
const termsOf = ({ wait, load, prefill, decode }) =>
  /** @type {[string, number][]} */ ([["wait", wait], ["load", load], ["read", prefill], ["write", decode]])
    .filter(([, time]) => time).map(([name, time]) => `${name} ${seconds(time)}`).join(" + ");

/** Agent, model, and the nodes in the order in which they are tried. @param {{ data: Nodes, traces: Trace[] }} props */
function Routes({ data, traces }) {
  const agents = [...new Set(data.routes.map((route) => route.agent))];
  if (!agents.length) return null;
  return html`<${Panel} title="Routes"><ul class="routes">${agents.map((agent) => {
    const servings = data.routes.filter((route) => route.agent === agent);
    return html`<li key=${agent}><b>${agent}</b><span class="arrow">→</span><span>${servings[0].model}</span><span class="arrow">→</span>
      <span class="stops">${servings.map((route, at) => html`<span key=${route.node} class=${`stop ${route.status}`}>
        <i class=${route.status === "online" ? "on" : "off"}></i>${route.node}<small>${route.upstream}${route.resident ? ", in memory" : ""}${route.status === "offline" ? ", down" : ""}</small></span>${at < servings.length - 1 && html`<span class="soft">then</span>`}`)}</span>
      <${LastChoice} trace=${traces.find((each) => each.agent === agent)} /></li>`;
  })}</ul><//>`;
}

/** @type {Record<string, string>} */
const OUTCOMES = { ok: "good", cancelled: "warn", failed: "bad", refused: "bad" };

/** @param {number} micros */
const seconds = (micros) => (micros ? `${(micros / 1e6).toFixed(micros < 1e7 ? 2 : 1)} s` : "–");

/** Each comes when it ends, and stands where it began: the newest on top. */
function useTraces() {
  const [rows, setRows] = useState(/** @type {Trace[] | null} */ (null));
  const add = (/** @type {Trace[]} */ some) =>
    setRows((before) =>
      [...some.filter((row) => !before?.some((each) => each.at === row.at)), ...(before || [])]
        .sort((one, other) => other.at.localeCompare(one.at)).slice(0, MOST)
    );
  const live = connection.value === "live";
  useEffect(() => {
    if (!live) return;
    const stop = watch({ kind: "traces", name: "", after: () => 0, hear: (frame) => add(frame.rows) });
    call("trace.list", { limit: 100 }).then(add, complain);
    return stop;
  }, [live]);
  return rows;
}

/** @param {{ rows: Trace[] | null, nodes: string[] }} props */
function Traces({ rows, nodes }) {
  const [which, setWhich] = useState("");
  const [node, setNode] = useState("");
  const [agent, setAgent] = useState("");
  const [open, setOpen] = useState("");
  const agents = [...new Set((rows || []).map((row) => row.agent).filter(Boolean))].sort();
  const shown = (rows || []).filter((row) => (!which || row.outcome !== "ok") && (!node || row.node === node) && (!agent || row.agent === agent));
  const one = (/** @type {string} */ label, /** @type {string} */ all, /** @type {string} */ value, /** @type {string[]} */ names, /** @type {(name: string) => void} */ choose) =>
    html`<select class="small" aria-label=${label} value=${value} onChange=${(/** @type {any} */ event) => choose(event.target.value)}>
      <option value="">${all}</option>${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`;
  return html`<${Panel} title="Requests" actions=${html`${one("Agent of the requests", "All agents", agent, agents, setAgent)}${one("Node of the requests", "All nodes", node, nodes, setNode)}
      <${Switch} label="Which requests" value=${which} choose=${setWhich} options=${[["", "All"], ["bad", "Failed"]]} />`}>
    ${!rows ? html`<${Loading} rows=${2} />` : !shown.length ? html`<p class="inside soft">${rows.length ? "None of these." : "No requests yet. The relay, which `fleet up` starts, records them."}</p>` : html`
    <div class="scroll-x traces" tabindex="0" role="region" aria-label="Requests"><table><thead><tr><th scope="col">When</th><th scope="col">Agent</th><th scope="col" class="extra">Model</th><th scope="col">Node</th>
      <th scope="col" class="number">Tokens</th><th scope="col" class="number extra">Waited</th><th scope="col" class="number">First</th><th scope="col" class="number">Took</th><th scope="col">Outcome</th></tr></thead>
      <tbody>${shown.slice(0, 100).map((row) => html`<${TraceRow} key=${row.at} row=${row} open=${open === row.at} toggle=${() => setOpen(open === row.at ? "" : row.at)} />`)}</tbody></table></div>`}
  <//>`;
}

/** @param {{ row: Trace, open: boolean, toggle: () => void }} props */
const TraceRow = ({ row, open, toggle }) => html`
  <tr><td><button class="quiet why-there" aria-expanded=${open} aria-label=${`Why ${row.node || "no node"}`} onClick=${toggle}><${Icon} name="chevron" /></button><${Clock} at=${row.at} /></td>
    <td>${row.agent || "–"}</td><td class="extra">${row.model}</td><td>${row.node || "–"}</td>
    <td class="number">${short(row.prompt_tokens)} / ${short(row.output_tokens)}</td><td class="number extra">${seconds(row.wait)}</td><td class="number">${seconds(row.first)}</td>
    <td class="number">${seconds(row.total)}</td><td><span class=${`status ${OUTCOMES[row.outcome] || "plain"}`}><i></i>${row.outcome}${row.outcome !== "ok" && row.status ? ` (${row.status})` : ""}</span></td></tr>
  ${open && html`<tr class="why-row"><td colspan="9"><${Why} row=${row} /></td></tr>`}`;

/** @param {{ at: string }} props */
const Clock = ({ at }) => html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${new Date(at).toLocaleTimeString([], { hour12: false })}</time>`;

/** Why there: what each node was expected to take, the chosen one first. @param {{ row: Trace }} props */
function Why({ row }) {
  const most = Math.max(...row.estimates.map((each) => each.total), 1);
  return html`<div class="why-there-text">
    ${row.estimates.length ? html`<p>The relay expected ${row.node} to answer soonest${row.cached_tokens ? `; it had ${short(row.cached_tokens)} tokens of the prompt in its cache` : ""}.</p>` : html`<p>No estimates were recorded.</p>`}
    ${row.estimates.map((each) => html`<div class="estimate" key=${each.node}><b>${each.node}</b><${Meter} value=${each.total} max=${most} tone=${each.node === row.node ? "good" : "plain"} label=${`Expected time of ${each.node}`} />
      <span class="number">${seconds(each.total)}</span><small>${termsOf(each)}</small></div>`)}
    ${row.tried.map((text) => html`<p class="bad" key=${text}>Failed before: <bdi>${text}</bdi></p>`)}
    ${row.error && html`<p class="bad"><bdi>${row.error}</bdi></p>`}
    ${row.session && html`<p class="soft">${row.session}</p>`}</div>`;
}

/** LiteLLM and the relay; what LiteLLM wrote, for who may read it. @param {{ data: import("../api.d.ts").GatewayRow }} props */
function Gateway({ data }) {
  const [severity, setSeverity] = useState("");
  const [open, setOpen] = useState(false);
  const log = usePolled(() => (open && may("admin") ? call("gateway.log", { severity: /** @type {any} */ (severity) }) : Promise.resolve([])), 3000, [open, severity]);
  return html`<${Panel} title="Gateway" actions=${may("admin") && html`<button class="quiet" aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? "Hide the log" : "Show LiteLLM's log"}</button>`}>
    <ul class="services">${data.services.map((service) => html`<li key=${service.name}><b>${service.name === "gateway" ? `LiteLLM ${data.version}` : "Relay"}</b>
      <span class=${`status ${service.answers ? "good" : service.running ? "bad" : "off"}`}><i></i>${service.answers ? "answers" : service.running ? "does not answer" : "stopped"}</span>
      <small>port ${service.port}${service.since ? html`, since <${Since} at=${service.since} />` : ""}</small></li>`)}</ul>
    ${data.stale && html`<p class="inside warn-text">They run with another fleet.yaml. <${Command} command="fleet gateway start" /></p>`}
    ${!data.services.some((service) => service.running) && html`<p class="inside soft">Start both with <${Command} command="fleet up" /></p>`}
    ${open && html`<div class="log-head"><${Switch} label="Severity" value=${severity} choose=${setSeverity} options=${[["", "All"], ["error", "Errors"], ["warning", "Warnings"], ["good", "Answers"]]} /></div>
      <div class="log" tabindex="0" role="log" aria-label="LiteLLM's log">${(log.data || []).map((line, at) => html`<div key=${at} class=${line.severity}><span class="soft">${line.at}</span> <b>${line.level || line.severity}</b> <bdi>${line.text}</bdi>${line.detail && html`<pre>${line.detail}</pre>`}</div>`)}
        ${!log.data?.length && html`<p class="soft">Nothing of that.</p>`}</div>`}
  <//>`;
}

/** @type {Record<string, string>} */
const HOST_STATES = { awake: "good", draining: "warn", silent: "bad", lost: "bad", stopped: "off" };

/** @param {{ row: import("../api.d.ts").HostRow, again: () => void }} given */
function HostActions({ row, again }) {
  const draining = row.state === "draining";
  const turn = async () => {
    if (await act(draining ? "host.resume" : "host.drain", { host: row.id }, draining ? `${row.name} starts runs again.` : `${row.name} starts no new runs; those it has go on.`)) again();
  };
  const forget = async () => {
    if (await act("host.forget", { host: row.id }, `Removed ${row.name}.`)) again();
  };
  if (!row.awake) return html`<button class="quiet" onClick=${forget}>Remove</button>`;
  return html`<button class="quiet" onClick=${turn}>${draining ? "Resume" : "Drain"}</button>`;
}

const loadHost = () => import("../parts/host.js");

/** @param {{ rows: import("../api.d.ts").HostRow[], limits: import("../api.d.ts").LimitRow[], again: () => void }} props */
function Hosts({ rows, limits, again }) {
  const [open, setOpen] = useState("");
  const { View: Host } = usePart(open ? loadHost : null);
  return html`<${Panel} title="Hosts">
    <${Table} label="Hosts" rows=${rows} id=${(/** @type {any} */ row) => row.id} columns=${[
      { name: "Host", wide: true, of: (/** @type {any} */ row) => html`<button class="quiet id" aria-label=${`Check ${row.name || row.id}`} onClick=${() => setOpen(row.id)}>${row.name || row.id}</button>${row.release && html` <small>fleet ${row.release}</small>`}${row.down.map((/** @type {any} */ each) => html`<small class="detail bad"><bdi>${each.what}: ${each.why}</bdi></small>`)}${row.missing.map((/** @type {any} */ each) => html`<small class="detail">needs ${each.why || each.what}</small>`)}${row.without.map((/** @type {any} */ each) => html`<small class="detail"><bdi>${each.what}: ${each.why}</bdi></small>`)}` },
      { name: "Supervisor", of: (/** @type {any} */ row) => html`<span class=${`status ${HOST_STATES[row.state] || "off"}`}><i></i>${row.state}</span>${!row.awake && html`<small class="detail">since <${Since} at=${row.seen_at} /></small>`}` },
      { name: "Labels", of: (/** @type {any} */ row) => row.labels.join(", ") },
      { name: "Runs", number: true, of: (/** @type {any} */ row) => `${row.runs}${row.room ? ` of ${row.room}` : ""}` },
      { name: "Disk", number: true, of: (/** @type {any} */ row) => row.disk ? gigabytes(row.disk.total) : "–" },
      ...(may("admin") ? [{ name: "Do", doing: true, of: (/** @type {any} */ row) => html`<${HostActions} row=${row} again=${again} />` }] : []),
    ]} empty=${html`<p class="inside soft">No supervisor has run on any machine yet. <${Command} command="fleet run" /></p>`} />
    ${limits.map((row) => html`<p class="inside warn-text" key=${row.name}><${Icon} name="clock" /> ${row.name} rests for another ${Math.max(1, Math.round((Date.parse(row.until) - now.value) / 60000))} min. <bdi>${row.why}</bdi></p>`)}
    ${Host && html`<${Host} host=${open} close=${() => setOpen("")} />`}
  <//>`;
}
