// What needs a person, kind by kind, the oldest first. The action is in the row.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { act, call, toast } from "../call.js";
import { useKeys } from "../keys.js";
import { loadInbox } from "../live.js";
import { ask, confirm, onSubmit } from "../parts/dialog.js";
import { Ago, Command, duration, Empty, Icon, last, lasted, Loading, money, Trouble, useLoaded } from "../parts/show.js";
import { go } from "../router.js";
import { inbox, inboxError, may, tasks, version } from "../store.js";

/** @typedef {import("../api.d.ts").Item} Item */
/** @typedef {{ name: string, key?: string, primary?: boolean, danger?: boolean, run: () => unknown }} Doing */

/** @type {[string, string[]][]} */
const SECTIONS = [
  ["Waiting for your answer", ["question", "budget"]],
  ["Waiting for permission", ["permission", "first-start", "panel"]],
  ["Came back from landing", ["landing", "conflict"]],
  ["Failed", ["failed"]],
  ["Machines", ["node", "host"]],
  ["Held back", ["untrusted", "held"]],
  ["To review", ["review"]],
  ["Done, and not landed", ["not-landed"]],
  ["Finished", ["finished"]],
];

/** @param {string} id @returns {string} */
const factOf = (id) => id.slice(id.lastIndexOf(":") + 1);

/** @param {string} name @param {any} fields @param {string} done */
const then = async (name, fields, done) => {
  if (await act(/** @type {any} */ (name), fields, done)) loadInbox();
};

/** What can be done about an item here. @param {Item} item @returns {Doing[]} */
function doings(item) {
  const task = item.task || "";
  const known = new Set(item.actions.map((each) => each.operation));
  /** @type {Doing[]} */
  const some = [];
  if (known.has("message.answer") && may("answer")) {
    (item.options || []).forEach((option, at) =>
      some.push({ name: option, key: String(at + 1), primary: at === 0, run: () => answer(item, String(at + 1), option) })
    );
  }
  if (known.has("run.permit") && may("answer")) {
    const asks = item.words === item.title ? "" : item.words;
    if (may("admin")) some.push({ name: "Allow", key: "a", primary: true, run: () => then("run.permit", { task, allow: true, asks }, "Allowed.") });
    some.push({ name: "Deny", key: "d", run: () => then("run.permit", { task, allow: false, asks }, "Denied.") });
  }
  if (known.has("land.release") && may("merge")) {
    const landing = factOf(item.id);
    some.push({ name: "Try again", key: "y", primary: true, run: () => then("land.release", { landing }, `${task} is queued to land.`) });
    some.push({ name: "Send back", key: "b", run: () => sendBack(task) });
    some.push({ name: "Give up", run: () => then("land.drop", { landing }, `${task} stays on its branch.`) });
  }
  if (known.has("task.retry") && may("assign")) {
    some.push({ name: "Retry", key: "y", primary: true, run: () => then("task.retry", { task }, `${task} runs again.`) });
    some.push({ name: "Retry with …", run: async () => (await import("../parts/retry.js")).retryWith(task, loadInbox) });
  }
  if (known.has("model.warm") && may("spawn")) {
    const node = item.title || "";
    some.push({ name: "Try it again", key: "y", primary: true, run: () => then("model.warm", { node }, `Loading the models of ${node}, if it answers.`) });
  }
  if (item.kind === "not-landed" && may("merge")) {
    some.push({ name: "Land", key: "l", primary: true, run: () => then("land.add", { tasks: [task] }, `${task} is queued to land.`) });
  }
  if (item.kind === "review" && may("merge")) {
    some.push({ name: "Accept", key: "l", primary: true, run: () => then("review.submit", { task, verdict: "accept" }, `${task} is queued to land.`) });
    some.push({ name: "Send back", key: "b", run: () => sendBack(task) });
  }
  if (known.has("task.resume") && may("assign")) {
    some.push({ name: "Let it run", key: "y", primary: true, run: () => then("task.resume", { task }, `${task} may run.`) });
  }
  if (known.has("task.cancel") && may("assign")) some.push({ name: "Cancel", run: () => cancel(item) });
  if (item.kind === "finished") some.push({ name: "Seen", key: "e", primary: true, run: () => seen([item]) });
  return some;
}

/** @param {Item} item @param {string} text @param {string} [shown] */
const answer = (item, text, shown = text) =>
  then("message.answer", { name: factOf(item.id), text }, `Answered ${item.task}: ${shown}`);

/** Put them away for good. @param {Item[]} items */
export function seen(items) {
  inbox.value = (inbox.value || []).filter((item) => !items.includes(item));
  then("inbox.seen", { items: items.map((item) => item.id) }, "");
}

/** Put it away for a while; the toast undoes it. @param {Item} item @param {number} [seconds] */
async function snooze(item, seconds = 3600) {
  const row = await act("inbox.snooze", { item: item.id, seconds });
  if (!row) return;
  toast(`Snoozed for ${duration(seconds)}.`, { undo: () => then("inbox.snooze", { item: item.id, seconds: 0 }, "") });
  loadInbox();
}

/** @param {string} task */
async function sendBack(task) {
  const text = await ask({ title: `Send ${task} back`, field: "What should its agent change?", yes: "Send back", needed: true });
  if (text) then("task.send_back", { task, text }, `${task} is with its agent again.`);
}

/** @param {Item} item */
async function cancel(item) {
  const text = `${item.title} Its branch and what was done stay.`;
  const agreed = await confirm({ title: `Cancel ${item.task}?`, text, yes: "Cancel the task", danger: true });
  if (agreed) then("task.cancel", { task: item.task }, `${item.task} is cancelled.`);
}

export default function Inbox() {
  const [at, setAt] = useState("");
  const items = inbox.value;
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const sections = SECTIONS.map(([name, kinds]) => ({ name, items: (items || []).filter((item) => kinds.includes(item.kind)) }))
    .filter((section) => section.items.length);
  const order = sections.flatMap((section) => section.items);
  const chosen = order.find((item) => item.id === at) || order[0];
  const move = (/** @type {number} */ by) => {
    const index = Math.max(0, Math.min(order.length - 1, order.indexOf(chosen) + by));
    if (order[index]) setAt(order[index].id);
  };
  const press = (/** @type {string} */ key) => chosen && doings(chosen).find((each) => each.key === key)?.run();
  useEffect(() => {
    if (at) list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [at]);
  useKeys([
    { key: "j", what: "Next item", run: () => move(1) },
    { key: "k", what: "Previous item", run: () => move(-1) },
    { key: "ArrowDown", what: "Next item", run: () => move(1) },
    { key: "ArrowUp", what: "Previous item", run: () => move(-1) },
    { key: "o", what: "Open the task", run: () => chosen?.task && go(`/t/${chosen.task}`) },
    { key: "Enter", what: "Open the task", run: () => chosen?.task && go(`/t/${chosen.task}`) },
    { key: "r", what: "Write an answer", run: () => focusField(list.current) },
    { key: "s", what: "Snooze for an hour", run: () => chosen && snooze(chosen) },
    ...["a", "d", "l", "b", "y", "e", ..."123456789"].map((key) => ({ key, what: WHAT[key] || `Choose answer ${key}`, run: () => press(key) })),
  ], [chosen?.id, order.map((item) => item.id).join()]);
  if (inboxError.value && !items) return html`<${Trouble} error=${inboxError.value} again=${loadInbox} />`;
  return html`<section class="inbox" ref=${list} aria-labelledby="inbox-title">
    <h1 id="inbox-title">Inbox</h1>
    ${!items && html`<${Loading} />`}
    ${items && !order.length && html`<${Empty} title="Nothing needs you"><${Quiet} /><//>`}
    ${sections.map((section) =>
      html`<section key=${section.name} aria-label=${section.name}>
        <h2 class="label">${section.name} <span>${section.items.length}</span>
          ${section.name === "Finished" && section.items.length > 1 && html`<button class="quiet" onClick=${() => seen(section.items)}>All seen</button>`}</h2>
        <ul class="cards">${section.items.map((item) =>
          html`<${Row} key=${item.id} item=${item} current=${item === chosen} choose=${() => setAt(item.id)} />`)}</ul>
      </section>`
    )}
  </section>`;
}

const DIFFS = new Set(["review", "not-landed", "landing", "conflict"]); // whose changes one reads first

/** @type {Record<string, string>} */
const WHAT = { a: "Allow", d: "Deny", l: "Land, or accept", b: "Send back", y: "Retry, or let it run", e: "Seen" };

/** @param {HTMLElement | null} list */
function focusField(list) {
  const field = list?.querySelector("[aria-current] input");
  if (field instanceof HTMLElement) field.focus();
}

function Quiet() {
  version.value;
  const running = [...tasks.values()].filter((row) => row.state === "running").length;
  return html`<p>${running ? `${running} running. Questions, failures and finished work appear here.` : "Questions, failures and finished work appear here."}</p>`;
}

const WORK = new Set(["review", "not-landed", "failed", "finished"]); // of which one asks what it took

/** How much it changed and cost, and of the chosen one how its gate went. @param {{ task: string, current: boolean }} props */
function Work({ task, current }) {
  version.value;
  const run = tasks.get(task)?.run;
  const { data: gates } = useLoaded(() => (current ? call("task.gates", { task }) : Promise.resolve([])), [task, current]);
  const gate = gates?.find((each) => each.ended);
  const parts = [
    run?.added || run?.removed ? html`<span class="plus">+${run.added || 0}</span> <span class="minus">−${run.removed || 0}</span>` : null,
    gate && `gate ${gate.code === 0 ? "passed" : `failed (${gate.code})`} in ${gate.seconds}s`,
    run?.usage.cost ? money(run.usage.cost, run.usage.estimated) : null,
    run?.started_at && run.ended_at ? lasted(run.started_at, run.ended_at) : null,
  ].filter(Boolean);
  return parts.length > 0 && html`<small class="work">${parts.map((part, at) => html`${at > 0 && " · "}${part}`)}</small>`;
}

/** @param {{ item: Item, current: boolean, choose: () => void }} props */
function Row({ item, current, choose }) {
  const some = doings(item);
  const answers = item.actions.some((each) => each.operation === "message.answer") && may("answer");
  const typed = item.actions.filter((each) => !each.operation && each.name !== "diff");
  const title = item.title && item.title !== item.words ? item.title : "";
  return html`<li class=${`card ${item.severity}`} aria-current=${current ? "true" : undefined} onPointerDown=${choose} onFocusIn=${choose}>
    <div class="line">
      <i class="dot"></i>
      ${item.task ? html`<a class="id" href=${`/t/${item.task}`}>${item.task}</a>` : html`<span class="id">${item.kind}</span>`}
      ${title && html`<span class="of">${title}</span>`}
      <span class="grow"></span>
      ${(item.behind || 0) > 0 && html`<span class="behind" title="open tasks wait for this one">${item.behind} behind it</span>`}
      ${item.project && html`<span class="project" title=${item.project}>${last(item.project)}</span>`}
      <${Ago} at=${item.since} />
    </div>
    <p class="words">${item.words}${WORK.has(item.kind) && html`<${Work} task=${item.task || ""} current=${current} />`}</p>
    ${item.kind === "permission" && may("answer") && !may("admin") && html`<p class="soft note">Only a coordinator may allow this. You may deny it.</p>`}
    <div class="acts">
      ${some.map((each) =>
        html`<button class=${each.primary ? "primary" : ""} onClick=${each.run}>${each.name}${each.key && html`<kbd>${each.key}</kbd>`}</button>`
      )}
      ${answers && html`<${Write} item=${item} />`}
      ${!some.length && !answers && item.kind !== "node" && typed.slice(0, 1).map((each) => html`<${Command} command=${each.command} />`)}
      ${["node", "host"].includes(item.kind) && html`<a class="button quiet" href="/machines">Machines</a>`}
      ${item.task && html`<a class="button quiet" href=${`/t/${item.task}${DIFFS.has(item.kind) ? "/diff" : ""}`}>${DIFFS.has(item.kind) ? "Changes" : "Open"}</a>`}
      <button class="quiet" title="Snooze for an hour (s)" aria-label=${`Snooze ${item.task || item.kind}`} onClick=${() => snooze(item)}><${Icon} name="clock" /></button>
    </div>
  </li>`;
}

/** @param {{ item: Item }} props */
function Write({ item }) {
  const [text, setText] = useState("");
  const send = () => text.trim() && answer(item, text.trim());
  return html`<form class="write" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); send(); }}>
    <input aria-label=${`Answer ${item.task}`} placeholder="Write an answer" value=${text} onKeyDown=${onSubmit(send)}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    <button aria-label=${`Send the answer to ${item.task}`} disabled=${!text.trim()}>Send</button>
  </form>`;
}
