// One task: what came of it first, then why it is not running, its runs, and what was said.
import { html, useEffect, useState } from "../vendor/preact.js";
import { act, call, callAhead } from "../call.js";
import { useKeys } from "../keys.js";
import { plain } from "../parts/ansi.js";
import { Priority } from "../parts/priority.js";
import { confirm, onSubmit } from "../parts/dialog.js";
import { Facts, Meter, Panel, Tabs } from "../parts/data.js";
import { Markdown, Phrase } from "../parts/markdown.js";
import { Ago, Empty, Fix, last, lasted, Loading, money, short, Status, Trouble, useLoaded, usePart } from "../parts/show.js";
import { accept, retryWith, sendBack } from "../parts/verdict.js";
import { go, query } from "../router.js";
import { heard, may, put, tasks, version } from "../store.js";

/** @typedef {import("../api.d.ts").TaskDetail} Detail */
/** @typedef {import("../api.d.ts").TaskRow} TaskRow */

/** Loaded again whenever an event names the task, or its row changes. @param {string} id */
function useTask(id) {
  const [round, setRound] = useState("");
  version.value;
  const row = tasks.get(id);
  const fact = heard.value.findLast((event) => event.task === id);
  useEffect(() => {
    const timer = setTimeout(() => setRound(`${row?.status} ${row?.run?.id} ${fact && JSON.stringify(fact)}`), 200);
    return () => clearTimeout(timer);
  }, [row?.status, row?.run?.id, fact]);
  const loaded = useLoaded(() => call("task.show", { task: id }), [id, round]);
  useEffect(() => {
    if (loaded.data) put([loaded.data.task]);
  }, [loaded.data]);
  return loaded;
}

/** `ahead`: what it asks for, while its code comes. @type {{ name: string, label: string, load: () => Promise<any>, ahead?: (task: string) => void, shown?: (detail: Detail) => boolean }[]} */
const TABS = [
  { name: "transcript", label: "Transcript", load: () => import("./transcript.js") },
  { name: "diff", label: "Changes", load: () => import("./diff.js"), ahead: (task) => callAhead("task.diff", { task, against: new URLSearchParams(query.value).get("since") || "" }), shown: (detail) => detail.runs.length > 0 },
  { name: "timeline", label: "Timeline", load: () => import("./timeline.js") },
  { name: "files", label: "Files", load: () => import("./files.js"), shown: (detail) => detail.runs.length > 0 && may("answer") },
  { name: "explain", label: "Explain", load: () => import("./explain.js") },
  { name: "terminal", label: "Terminal", load: () => import("./terminal.js"), shown: (detail) => detail.spec.mode === "terminal" && may("answer") },
];

/** The module of a tab, once it is loaded. @param {string} name @param {string} task */
function useTab(name, task) {
  const found = TABS.find((tab) => tab.name === name);
  useEffect(() => found?.ahead?.(task), [name]);
  return usePart(found?.load);
}

/** @param {{ words: string[] }} props */
export default function Task({ words: [id, tab = ""] }) {
  const { data, error, again } = useTask(id);
  const { View, error: broken } = useTab(tab, id);
  useKeys(data ? [{ key: "v", what: "Next part of the task", run: () => go(nextTab(data, tab)) }] : [], [id, tab, Boolean(data)]);
  if (/** @type {any} */ (error)?.status === 404) return html`<${Missing} id=${id} />`;
  if (error && !data) return html`<${Trouble} error=${error} again=${again} />`;
  if (!data || data.task.id !== id) return html`<${Loading} rows=${5} />`;
  const row = tasks.get(id) || data.task;
  const tabs = tabsOf(data).map(({ name, label }) => ({ to: `/t/${id}${name && `/${name}`}`, name: label }));
  return html`<section class=${`task ${tab && "full"}`} aria-labelledby="task-title">
    <${Head} row=${row} detail=${data} again=${again} brief=${tab} />
    ${!tab && html`<${Why} row=${row} detail=${data} />`}
    <${Tabs} label="Of this task" at=${`/t/${id}${tab && `/${tab}`}`} tabs=${tabs} />
    ${!tab
      ? html`<${Overview} row=${row} detail=${data} again=${again} />`
      : broken
      ? html`<${Trouble} error=${broken} again=${() => location.reload()} />`
      : View
      ? html`<${View} row=${row} detail=${data} again=${again} />`
      : html`<${Loading} rows=${4} />`}
  </section>`;
}

/** @param {{ id: string }} props */
const Missing = ({ id }) =>
  html`<${Empty} icon="search" title=${`There is no task ${id}`}><p>It may be of another team, or was removed when it was old. <a href="/tasks?view=all">See all tasks</a></p><//>`;

/** @param {Detail} detail */
const tabsOf = (detail) => [{ name: "", label: "Overview" }, ...TABS.filter((tab) => !tab.shown || tab.shown(detail))];

/** @param {Detail} detail @param {string} at */
function nextTab(detail, at) {
  const tabs = tabsOf(detail);
  const next = tabs[(tabs.findIndex((tab) => tab.name === at) + 1) % tabs.length];
  return `/t/${detail.task.id}${next.name && `/${next.name}`}`;
}

/** What can be done with a task in this state. @param {TaskRow} row @param {() => void} again */
function doings(row, again) {
  const task = row.id;
  const then = async (/** @type {any} */ name, /** @type {any} */ fields, /** @type {string} */ done) => {
    const reply = await act(name, fields, done);
    if (reply) again();
  };
  /** @type {{ name: string, key: string, primary?: boolean, run: () => unknown }[]} */
  const some = [];
  const closed = ["done", "cancelled"].includes(row.state);
  if (may("merge") && row.status === "done" && row.run?.branch) {
    some.push({ name: "Land", key: "l", primary: true, run: () => then("land.add", { tasks: [task] }, `${task} is queued to land.`) });
  }
  if (may("merge") && row.status === "review") {
    some.push({ name: "Accept", key: "l", primary: true, run: () => accept(task).then((done) => done && again()) });
  }
  if (may("merge") && ["review", "done", "landing"].includes(row.status)) {
    some.push({ name: "Send back", key: "b", run: () => sendBack(task).then((done) => done && again()) });
  }
  if (may("assign") && row.status === "failed") {
    some.push({ name: "Retry", key: "y", primary: true, run: () => then("task.retry", { task }, `${task} runs again.`) });
    some.push({ name: "Retry with …", key: "w", run: () => retryWith(task).then((done) => done && again()) });
  }
  if (may("assign") && ["paused", "held"].includes(row.status)) {
    some.push({ name: "Resume", key: "y", primary: true, run: () => then("task.resume", { task }, `${task} may run.`) });
  } else if (may("assign") && row.paused && !closed) {
    some.push({ name: "Do not pause", key: "p", run: () => then("task.resume", { task }, `${task} goes on after this run, too.`) });
  } else if (may("assign") && !closed && !["failed", "review"].includes(row.state)) {
    const done = row.state === "running" ? `${task} finishes its current run, and then does not start until you resume it.` : `${task} is paused.`;
    some.push({ name: row.state === "running" ? "Pause after this run" : "Pause", key: "p", run: () => then("task.pause", { task }, done) });
  }
  if (may("assign") && !closed) {
    some.push({ name: row.state === "running" ? "Stop" : "Cancel", key: "#", run: () => cancel(row, again) });
  }
  return some;
}

/** @param {TaskRow} row @param {() => void} again */
async function cancel(row, again) {
  const agreed = await confirm({ title: `Cancel ${row.id}?`, text: `${row.title}: its branch and what was done stay.`, yes: "Cancel the task", danger: true });
  if (agreed && (await act("task.cancel", { task: row.id }, `${row.id} is cancelled.`))) again();
}

/** @param {{ row: TaskRow, detail: Detail, again: () => void, brief: string }} props */
function Head({ row, detail, again, brief }) {
  const some = brief === "diff" ? [] : doings(row, again); // there, its own bar has them
  useKeys([
    ...some.map(({ key, name, run }) => ({ key, what: name, run })),
    { key: "u", what: "Back to the tasks", run: () => go("/tasks") },
    { key: "d", what: "Read the changes", run: () => go(`/t/${row.id}/diff`) },
    { key: "s", what: "Read the transcript", run: () => go(`/t/${row.id}/transcript`) },
  ], [row.id, row.status]);
  return html`<header class="task-head">
    <div class="crumbs"><a href="/tasks">Tasks</a> <span>/</span> <code>${row.id}</code>
      ${detail.parent && html`<span class="soft">in <a class="linked" href=${`/t/${detail.parent}`}>${detail.parent}</a></span>`}</div>
    <div class="title"><h1 id="task-title" class=${row.title.length > 120 ? "long" : ""} title=${row.title.length > 120 ? row.title : undefined}><bdi>${row.title}</bdi></h1>
      <div class="acts">${some.map((each) =>
        html`<button class=${each.primary ? "primary" : ""} onClick=${each.run}>${each.name}<kbd>${each.key}</kbd></button>`)}</div></div>
    <div class="meta"><${Status} status=${row.status} />
      ${row.paused && row.state === "running" && html`<span class="tag warn">pauses after this run</span>`}
      ${brief && row.run?.branch && html`<code>${row.run.branch}</code>`}
      ${row.labels.map((label) => html`<span class="chip">${label}</span>`)}
      ${row.landed && html`<span class="soft">landed as <code>${row.landed.slice(0, 10)}</code></span>`}
      ${row.landing && html`<a class="linked" href="/land">${row.landing}</a>`}
    </div>
  </header>`;
}

/** Why it is not running, or waits for a person. @param {{ row: TaskRow, detail: Detail }} props */
function Why({ row, detail }) {
  const question = detail.messages.findLast((message) => message.kind === "question" && message.state === "open");
  if (question) return html`<${Question} question=${question} />`;
  if (row.status === "failed") {
    return html`<div class="why bad"><b>It failed</b><p><bdi>${detail.why}</bdi></p></div>`;
  }
  if (!detail.waits.length || row.state === "running" || row.status === "review") return null;
  return html`<div class="why warn"><b>Why it is not running</b>
    <ul>${detail.waits.map((wait) => html`<li><bdi>${wait.why}</bdi> <${Fix} fix=${wait.fix} /></li>`)}</ul></div>`;
}

/** @param {{ question: import("../api.d.ts").MessageRow }} props */
function Question({ question }) {
  const [text, setText] = useState("");
  const answer = (/** @type {string} */ words) =>
    words.trim() && act("message.answer", { name: question.id, text: words.trim() }, "Answered.");
  return html`<div class="why warn"><b>${may("answer") ? "It asks you" : "It asks"}</b><p><bdi>${question.text}</bdi></p>
    ${may("answer") && html`<div class="acts">
      ${question.options.map((option, at) => html`<button title=${option} onClick=${() => answer(String(at + 1))}><span class="name">${option}</span></button>`)}
      <form class="write" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); answer(text); }}>
        <input aria-label="Answer" placeholder="Write an answer" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
        <button disabled=${!text.trim()}>Send</button></form></div>`}</div>`;
}

/** @param {{ row: TaskRow, detail: Detail, again: () => void }} props */
function Overview({ row, detail, again }) {
  const run = detail.runs.at(-1);
  const above = row.status === "failed" || row.status === "asking"; // said above
  const words = above ? "" : row.run?.last || run?.detail;
  return html`<div class="panes">
    <div class="wide-pane">
      ${words && run && row.state === "running" && html`<${Now} row=${row} run=${run.id} words=${words} />`}
      ${words && row.state !== "running" && html`<${Panel} title="Last words" actions=${run && html`<a class="button quiet" href=${`/t/${row.id}/transcript`}>Transcript</a>`}>
        <div class="inside"><${Markdown} text=${words} /></div><//>`}
      ${run && html`<${Gates} row=${row} runs=${detail.runs.length} />${row.run?.branch && html`<${Changed} row=${row} runs=${detail.runs.length} />`}`}
      <${Runs} detail=${detail} />
      <${Checkpoints} detail=${detail} />
      <${Talk} row=${row} detail=${detail} again=${again} />
      ${detail.prompt && html`<details class="panel"><summary>Prompt</summary><div class="inside"><${Markdown} text=${detail.prompt} /></div></details>`}
    </div>
    <aside class="facts" aria-label="Facts"><${Facts} facts=${factsOf(row, detail)} /></aside>
  </div>`;
}

const RECENT = 20; // lines of the transcript
const MOST_STEPS = 4;
const STEPS = new Set(["text", "thinking", "tool"]);

/** What its agent said and did last, as it comes; its last words where the transcript is out of reach. @param {{ row: TaskRow, run: string, words: string }} props */
function Now({ row, run, words }) {
  const { data } = useLoaded(() => call("run.said", { run, limit: RECENT }), [run, row.run?.lines, row.run?.last]);
  const steps = (data?.rows || []).filter((each) => STEPS.has(each.kind) && (each.text || each.name)).slice(-MOST_STEPS);
  return html`<${Panel} title="Now" actions=${html`<a class="button quiet" href=${`/t/${row.id}/transcript`}>Transcript<kbd>s</kbd></a>`}>
    ${!steps.length
      ? html`<div class="inside"><${Markdown} text=${words} /></div>`
      : html`<ol class="steps">${steps.map((each, at) => html`<li key=${`${each.line} ${at}`} class=${each.kind}>${each.kind === "tool" && html`<b>${each.name || "tool"}</b> `}${each.kind === "tool" ? html`<bdi>${plain(each.text).slice(0, 400)}</bdi>` : html`<${Phrase} text=${plain(each.text).slice(0, 400)} />`}</li>`)}</ol>`}<//>`;
}

const LAST_LINES = 40;

/** How its newest gate went. @param {{ row: TaskRow, runs: number }} props */
function Gates({ row, runs }) {
  const { data } = useLoaded(() => call("task.gates", { task: row.id }), [row.id, row.status, runs]);
  const gate = data?.[0];
  if (!gate) return null;
  const passed = gate.ended && gate.code === 0;
  const tone = !gate.ended ? "busy" : passed ? "good" : "bad";
  const words = !gate.ended ? "running" : passed ? "passed" : `exit status ${gate.code}`;
  return html`<${Panel} label="Gate" title=${html`Gate <code>${gate.command}</code>`}
      actions=${html`<span class=${`tag ${tone}`}>${words}</span><small>${gate.seconds}s · ${gate.run}</small>`}>
    ${gate.output && html`<details class="output" open=${!passed}><summary>Output</summary><pre tabindex="0"><bdi>${plain(gate.output).split("\n").slice(-LAST_LINES).join("\n")}</bdi></pre></details>`}<//>`;
}

const MOST_FILES = 8;

/** Which files it changed. @param {{ row: TaskRow, runs: number }} props */
function Changed({ row, runs }) {
  const { data } = useLoaded(() => call("task.diff", { task: row.id, stat: true }), [row.id, row.status, runs]);
  if (!data?.total) return null;
  return html`<${Panel} label="Changes" title=${html`Changes <span class="plus">+${data.added}</span> <span class="minus">−${data.removed}</span>`}
      actions=${html`<a class="button" href=${`/t/${row.id}/diff`}>Read<kbd>d</kbd></a>`}>
    <ul class="stat-files">${data.files.slice(0, MOST_FILES).map((file) =>
      html`<li key=${file.path}><a href=${`/t/${row.id}/diff`}><code><bdi>${file.path}</bdi></code></a><span class="grow"></span><span class="plus">+${file.added}</span><span class="minus">−${file.removed}</span></li>`)}
      ${data.total > MOST_FILES && html`<li class="soft">and ${data.total - MOST_FILES} more</li>`}</ul><//>`;
}

const MOST_RUNS = 8;

/** The newest first; the others when they are asked for. @param {{ detail: Detail }} props */
function Runs({ detail }) {
  const [all, setAll] = useState(false);
  const count = detail.runs.length;
  if (!count) return null;
  const shown = [...detail.runs].reverse().slice(0, all ? count : MOST_RUNS);
  return html`<${Panel} title="Runs" actions=${shown.length < count && html`<button class="quiet" onClick=${() => setAll(true)}>Show all ${count}</button>`}><div class="scroll-x" tabindex="0" role="region" aria-label="Runs"><table>
      <thead><tr><th>Run</th><th>Ending</th><th class="extra">Coder</th><th class="number">Took</th><th class="number extra">Tokens</th><th class="number">Cost</th></tr></thead>
      <tbody>${shown.map((run) => html`<tr key=${run.id}><td class="nowrap"><code>${run.id}</code></td>
        <td><${Status} status=${ENDINGS[run.ending] || run.ending || run.state} />${run.detail && html`<small class="detail"><bdi>${run.detail}</bdi></small>`}</td>
        <td class="extra">${[run.coder, run.model, run.node && `@ ${run.node}`].filter(Boolean).join(" ")}</td>
        <td class="number">${lasted(run.started_at || run.claimed_at, run.ended_at)}</td>
        <td class="number extra">${short((run.usage.input || 0) + (run.usage.output || 0))}</td>
        <td class="number">${money(run.usage.cost || 0, run.usage.estimated)}</td></tr>`)}</tbody></table></div><//>`;
}

/** What can be gone back to, the newest first: the commit that each run ended with. @param {{ detail: Detail }} props */
function Checkpoints({ detail }) {
  const runs = detail.runs.filter((run, at) => run.commit && run.commit !== detail.runs[at - 1]?.commit).reverse().slice(0, MOST_RUNS);
  const [newest] = runs;
  if (!newest) return null;
  return html`<${Panel} title="Checkpoints"><ul class="stat-files">${runs.map((run) => html`<li key=${run.id}>
    <code title=${run.commit}>${run.commit?.slice(0, 10)}</code><span class="soft">after <code>${run.id}</code></span><span class="grow"></span>
    <${Ago} at=${run.ended_at} />${run !== newest && html`<a class="linked" href=${`/t/${detail.task.id}/diff?since=${run.commit}`}>Changes since</a>`}</li>`)}</ul><//>`;
}

/** @type {Record<string, string>} */
const ENDINGS = { succeeded: "done", asked: "asking" };

/** @param {{ row: TaskRow, detail: Detail, again: () => void }} props */
function Talk({ row, detail, again }) {
  const [text, setText] = useState("");
  const send = async () => {
    if (!text.trim()) return;
    if (await act("message.send", { task: row.id, text: text.trim() }, "Sent.")) {
      setText("");
      again();
    }
  };
  const open = !["done", "cancelled"].includes(row.state);
  if (!detail.messages.length && !(open && may("send"))) return null;
  return html`<${Panel} title="Messages"><div class="inside talk">
    ${detail.messages.map((message) =>
      html`<div key=${message.id} class="message"><div class="by"><b>${message.author}</b> <span class="soft">${message.kind}</span>
        <${Ago} at=${message.at} /> ${message.status && html`<span class="chip">${message.status}</span>`}</div><pre class="prose"><bdi>${message.text}</bdi></pre></div>`)}
    ${open && may("send") && html`<form onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); send(); }}>
      <textarea aria-label="Tell the agent" rows="2" placeholder="Tell the agent something" value=${text} onKeyDown=${onSubmit(send)}
        onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
      <button disabled=${!text.trim()}>Send</button></form>`}
  </div><//>`;
}

/** @param {{ ids: string[] }} props */
const Links = ({ ids }) => html`<span class="links">${ids.slice(0, 12).map((id) =>
  html`<a class="linked" href=${`/t/${id}`}>${id}</a> `)}${ids.length > 12 && `and ${ids.length - 12} more`}</span>`;

/** @param {TaskRow} row @param {Detail} detail @returns {[string, any][]} */
function factsOf(row, detail) {
  const { cost = 0, context: now = 0 } = row.run?.usage || {};
  const context = row.state === "running" ? now : row.run?.peak_context || 0;
  const window = row.run?.window || 0;
  return [
    ["Agent", row.agent || row.coder],
    ["Model", [row.model, detail.runs.at(-1)?.node && `on ${detail.runs.at(-1)?.node}`].filter(Boolean).join(" ")],
    ["Host", detail.runs.at(-1)?.host],
    ["Branch", row.run?.branch && html`<code class="branch" title=${row.run.branch}>${row.run.branch}</code>`],
    ["Base", detail.spec.base && html`<code>${detail.spec.base}</code>`],
    ["Project", html`<span title=${row.project}>${last(row.project)}</span>`],
    ["Gate", detail.spec.gate && html`<code>${detail.spec.gate}</code>`],
    ["Waits for", detail.after.length > 0 && html`<${Links} ids=${detail.after} />`],
    ["Needed by", detail.needed_by.length > 0 && html`<${Links} ids=${detail.needed_by} />`],
    ["Children", detail.children.length > 0 && html`<${Links} ids=${detail.children} />`],
    ["Cost", money(cost, row.run?.usage.estimated)],
    ["Budget", (row.budget || 0) > 0 && html`${money(row.spent || 0) || "$0"} of ${money(row.budget || 0)}<${Meter} value=${row.spent || 0} max=${row.budget} label="Spent of the budget" />`],
    ["Context", context > 0 && (window ? html`${short(context)} of ${short(window)} tokens<${Meter} value=${context} max=${window} label="Context in use" />` : `${short(context)} tokens`)],
    ["Attempts", detail.failures > 0 && `${detail.failures} failed`],
    ["Author", detail.author],
    ["Priority", html`<${Priority} row=${row} />`],
    ["Created", html`<${Ago} at=${row.created_at} />`],
  ];
}
