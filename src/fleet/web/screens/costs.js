// What the work cost: by day, and by who did it; what running tasks may still spend.
import { html, useState } from "../vendor/preact.js";
import { act, call, complain } from "../call.js";
import { Meter, Panel, Stat, Stats, Switch, Table } from "../parts/data.js";
import { ask } from "../parts/dialog.js";
import { duration, last, money, short } from "../parts/format.js";
import { usePolled } from "../parts/poll.js";
import { Empty, Icon, Loading, Trouble } from "../parts/show.js";
import { go, query } from "../router.js";
import { may, now } from "../store.js";

/** @typedef {import("../api.d.ts").UsedRow} Used */
/** @typedef {import("../api.d.ts").BudgetRow} Budget */

const DAY = 86_400_000;
const EVERY = 5000;
const SPANS = /** @type {[string, string][]} */ ([["today", "Today"], ["7", "7 days"], ["30", "30 days"]]);
const GROUPS = /** @type {[string, string][]} */ ([["agent", "Agent"], ["model", "Model"], ["node", "Node"], ["project", "Project"], ["team", "Team"], ["task", "Task"]]);
const EAST = -new Date().getTimezoneOffset();

/** When the span begins, at a midnight of this place. @param {string} span */
function beginOf(span) {
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  return new Date(midnight.getTime() - (span === "today" ? 0 : (Number(span) - 1) * DAY)).toISOString();
}

export default function Costs() {
  const asked = new URLSearchParams(query.value);
  const span = asked.get("span") || "today";
  const [group, setGroup] = useState("agent");
  const choose = (/** @type {string} */ value) => go(`/costs?span=${value}`, { replace: true });
  const over = usePolled(() => call("usage.report", { by: span === "today" ? "hour" : "day", since: beginOf(span), east: EAST }), EVERY, [span]);
  const by = usePolled(() => call("usage.report", { by: /** @type {any} */ (group), since: beginOf(span), east: EAST }), EVERY, [span, group]);
  const data = over.data;
  if (over.error && !data) return html`<${Trouble} error=${over.error} again=${over.again} />`;
  return html`<section class="costs" aria-labelledby="costs-title">
    <div class="head"><h1 id="costs-title">Costs</h1><span class="grow"></span><${Switch} label="Time" value=${span} options=${SPANS} choose=${choose} /></div>
    ${!data ? html`<${Loading} rows=${3} />` : html`<${Figures} report=${data} span=${span} />
      ${used(data) && html`<${Panel} title=${span === "today" ? "By the hour" : "By day"}><${Bars} rows=${filled(data.rows, span)} /><//>`}`}
    <${Budgets} />
    <${Parked} />
    ${data && !used(data) && html`<${Empty} icon="costs" title="Nothing was used in that time"><p>What agents use is counted as their runs end.</p><//>`}
    ${data && used(data) && html`<${Panel} title="Where it went" actions=${html`<${Switch} label="Group by" value=${group} options=${GROUPS} choose=${setGroup} />`}>
      ${by.data && by.data.by === group ? html`<${Groups} rows=${by.data.rows} by=${group} total=${by.data.total} />` : html`<${Loading} rows=${2} />`}<//>`}
  </section>`;
}

/** Whether there is anything to show. @param {import("../api.d.ts").UsageReport} report */
const used = ({ total, live }) => total.runs + live + total.input + total.output > 0;

/** What was spent since this hour began. @param {import("../api.d.ts").UsageReport} report */
function thisHour(report) {
  const name = new Date(Date.now() + EAST * 60_000).toISOString().slice(0, 13);
  return report.rows.find((row) => row.name === name)?.cost || 0;
}

/** @param {{ report: import("../api.d.ts").UsageReport, span: string }} props */
function Figures({ report, span }) {
  const { total, local } = report;
  const spent = [span === "today" && `${money(thisHour(report)) || "$0"} this hour`, report.live > 0 && `${report.live} still running`];
  return html`<${Stats} label="In that time">
    <${Stat} name="Spent" value=${money(total.cost) || "$0"} note=${spent.filter(Boolean).join(", ")} />
    <${Stat} name="Tokens" value=${short(total.input + total.output)} note=${`${short(total.input)} in${total.cached ? `, ${short(total.cached)} of it cached` : ""}, ${short(total.output)} out`} />
    <${Stat} name="Runs" value=${total.runs} note=${`${duration(total.worked / 1e6)} of work`} />
    <${Stat} name="On your own nodes" value=${local.input + local.output ? short(local.input + local.output) : "–"} tone=${local.runs ? "good" : ""}
      note=${report.saved ? `about ${money(report.saved)} saved` : local.runs ? "tokens, at no price" : "no tokens"} />
  <//>`;
}

/** With a row for each day or hour, also of those in which nothing ended. @param {Used[]} rows @param {string} span */
function filled(rows, span) {
  const known = new Map(rows.map((row) => [row.name, row]));
  const names = [];
  const start = Date.parse(beginOf(span));
  const step = span === "today" ? 3_600_000 : DAY;
  const end = span === "today" ? start + DAY - 1 : Date.now();
  for (let at = start; at <= end; at += step) {
    const there = new Date(at + EAST * 60_000 + (span === "today" ? 0 : 3_600_000)).toISOString();
    names.push(span === "today" ? there.slice(0, 13) : there.slice(0, 10));
  }
  return names.map((name) => known.get(name) || { name, runs: 0, input: 0, output: 0, cached: 0, cost: 0, worked: 0 });
}

/** Money as bars; tokens where nothing had a price. @param {{ rows: Used[] }} props */
function Bars({ rows }) {
  const paid = rows.some((row) => row.cost);
  const value = (/** @type {any} */ row) => (paid ? row.cost : row.input + row.output);
  const words = (/** @type {any} */ row) => (paid ? money(row.cost) || "$0" : `${short(row.input + row.output)} tokens`);
  const most = Math.max(...rows.map(value), 1);
  const label = (/** @type {string} */ name) =>
    name.length > 10 ? `${name.slice(11)}:00` : new Date(`${name}T12:00`).toLocaleDateString([], { month: "short", day: "numeric" });
  const step = Math.ceil(rows.length / (innerWidth < 600 ? 5 : 8));
  return html`<div class="bars" role="img" aria-label=${rows.filter(value).map((row) => `${label(row.name)}: ${words(row)}`).join(", ") || "Nothing yet"}>
    <span class="most">${words(rows.find((row) => value(row) === most) || { cost: 0, input: 0, output: 0 })}</span>
    ${rows.map((row, at) => html`<div key=${row.name} class="column" title=${`${label(row.name)}: ${words(row)}, ${row.runs} runs`}>
      <i style=${{ height: `${Math.round((value(row) / most) * 100)}%` }} class=${value(row) ? "" : "none"}></i><span>${at % step === 0 && rows.length - at > 2 ? label(row.name) : ""}</span></div>`)}</div>`;
}

/** @param {{ rows: Used[], by: string, total: Used }} props */
function Groups({ rows, by, total }) {
  const name = (/** @type {Used} */ row) => {
    if (by === "task" && row.name.startsWith("t-")) return html`<a class="linked" href=${`/t/${row.name}`}>${row.name}</a>`;
    return html`<bdi title=${row.name}>${by === "project" ? last(row.name) || "–" : row.name || (by === "node" ? "hosted" : "its default")}</bdi>`;
  };
  const most = total.cost || total.input + total.output;
  return html`<${Table} label="Where it went" rows=${rows} id=${(/** @type {Used} */ row) => row.name} columns=${[
    { name: "Name", wide: true, of: name },
    { name: "Share", extra: true, of: (/** @type {Used} */ row) => html`<div class="share"><${Meter} tone="busy" value=${total.cost ? row.cost : row.input + row.output} max=${most} label=${`Share of ${row.name}`} /></div>` },
    { name: "Runs", number: true, extra: true, of: (/** @type {Used} */ row) => row.runs },
    { name: "Tokens", number: true, of: (/** @type {Used} */ row) => short(row.input + row.output) },
    { name: "Worked", number: true, extra: true, of: (/** @type {Used} */ row) => duration(row.worked / 1e6) },
    { name: "Cost", number: true, of: (/** @type {Used} */ row) => money(row.cost) || "–" },
  ]} empty=${html`<p class="inside soft">Nothing has ended yet.</p>`} />`;
}

/** Accounts and machines that are not used for a while, after a limit. */
function Parked() {
  const { data } = usePolled(() => call("limit.list", {}), 15_000);
  if (!data?.length) return null;
  return html`<${Panel} title="Limits reached"><ul class="parked">${data.map((row) => html`<li key=${row.name} class="inside"><${Icon} name="clock" /> <b><bdi>${row.name}</bdi></b>
    rests until <time datetime=${row.until}>${new Date(row.until).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false })}</time>,
    for another ${duration(Math.max(60, (Date.parse(row.until) - now.value) / 1000))}. <span class="soft"><bdi>${row.why}</bdi></span></li>`)}</ul><//>`;
}

/** What running tasks may still cost. */
function Budgets() {
  const { data, again } = usePolled(() => call("budget.list"), EVERY);
  if (!data?.length) return null;
  const cap = async (/** @type {Budget} */ row) => {
    const text = await ask({ title: `Cap ${row.task}`, text: "The task asks you before it costs more than this in all.", field: "Dollars", yes: "Set the budget", needed: true, choices: [] });
    if (text === null) return;
    const cost = Math.round(Number(text.replace("$", "").replace(",", ".")) * 1e6);
    if (!(cost > 0)) return complain(new Error(`'${text}' is not an amount in dollars. Write 5 or 2.50.`));
    if (await act("task.edit", { task: row.task, budget: { cost, tokens: row.own ? row.tokens : 0, seconds: row.own ? row.seconds : 0 } }, `${row.task} may cost ${money(cost)}.`)) again();
  };
  return html`<${Panel} title="Running now"><ul class="budgets">${data.slice(0, 20).map((row) => html`<li key=${row.task}>
    <div class="what"><a class="linked" href=${`/t/${row.task}`}>${row.task}</a> <bdi>${row.title}</bdi></div>
    <div class="meter">${row.cost ? html`<${Meter} value=${row.cost_spent} max=${row.cost} label=${`Budget of ${row.task}`} />` : ""}
      <span class="number">${money(row.cost_spent) || `${short(row.tokens_spent)} tokens`}${row.cost ? ` of ${money(row.cost)}` : ""} <small>${[row.burn && `${money(row.burn)} a minute`, !row.cost ? "no budget" : row.own ? "" : "as the settings say"].filter(Boolean).join(" · ")}</small></span></div>
    ${may("assign") && html`<button onClick=${() => cap(row)} aria-label=${`Cap ${row.task}`}>Cap</button>`}</li>`)}</ul><//>`;
}
