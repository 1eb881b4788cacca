// What needs a person, kind by kind, the oldest first. The action is in the row.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { act, call, complain, toast } from "../call.js";
import { useCursor, useKeys } from "../keys.js";
import { loadInbox } from "../live.js";
import { confirm, onSubmit } from "../parts/dialog.js";
import { NotifyMe } from "../parts/notify.js";
import { absent, AddOne, Ago, Command, duration, Empty, Icon, last, lasted, Loading, money, Trouble, useLoaded, usePart } from "../parts/show.js";
import { go } from "../router.js";
import { counts, inbox, inboxError, inboxGoesOn, loaded, may, tasks, version } from "../store.js";

/** @typedef {import("../api.d.ts").InboxItem} Item */
/** @typedef {{ name: string, key?: string, hint?: string, primary?: boolean, danger?: boolean, run: () => unknown }} Doing */

const ANSWER = "Waiting for your answer";
/** @type {[string, string[]][]} */
const SECTIONS = [
  [ANSWER, ["question", "budget"]],
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

/** @param {unknown} done */
const look = (done) => {
  if (done) loadInbox();
};

/** @param {string} name @param {any} fields @param {string} done */
const then = (name, fields, done) => act(/** @type {any} */ (name), fields, done).then(look);

/** By code that the first screen can do without. @param {(verdict: typeof import("../parts/verdict.js")) => Promise<unknown>} run */
const judge = (run) => import("../parts/verdict.js").catch(() => Promise.reject(absent("load the page again"))).then(run).then(look, complain);

/** What can be done about an item here. @param {Item} item @returns {Doing[]} */
export function doings(item) {
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
    if (may("admin") && item.always) some.push({ name: "Always", key: "A", hint: item.always, run: () => then("run.permit", { task, allow: true, asks, always: true }, "Allowed from now on.") });
    some.push({ name: "Deny", key: "d", run: () => then("run.permit", { task, allow: false, asks }, "Denied.") });
  }
  if (known.has("land.release") && may("merge")) {
    const landing = factOf(item.id);
    some.push({ name: "Try again", key: "y", primary: true, run: () => then("land.release", { landing }, `${task} is queued to land.`) });
    some.push({ name: "Send back", key: "b", run: () => judge((verdict) => verdict.sendBack(task)) });
    some.push({ name: "Give to …", run: () => judge((verdict) => verdict.give(landing)) });
    some.push({ name: "Give up", run: () => then("land.drop", { landing }, `${task} stays on its branch.`) });
  }
  if (known.has("task.retry") && may("assign")) {
    some.push({ name: "Retry", key: "y", primary: true, run: () => then("task.retry", { task }, `${task} runs again.`) });
    some.push({ name: "Retry with …", run: () => judge((verdict) => verdict.retryWith(task)) });
  }
  if (known.has("model.warm") && may("spawn")) {
    const node = item.title || "";
    some.push({ name: "Try it again", key: "y", primary: true, run: () => then("model.warm", { node }, `Loading the models of ${node}, if it answers.`) });
    some.push({ name: "Warm the others", run: () => then("model.warm", {}, "Loading the models on every node that answers.") });
  }
  if (known.has("host.forget") && may("admin")) some.push({ name: "Remove it", run: () => forget(item) });
  if (item.kind === "not-landed" && may("merge")) {
    some.push({ name: "Land", key: "l", primary: true, run: () => then("land.add", { tasks: [task] }, `${task} is queued to land.`) });
  }
  if (item.kind === "review" && may("merge")) {
    some.push({ name: "Accept", key: "l", primary: true, run: () => judge((verdict) => verdict.accept(task)) });
    some.push({ name: "Send back", key: "b", run: () => judge((verdict) => verdict.sendBack(task)) });
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

/** @param {Item} item */
async function cancel(item) {
  const text = `${item.title} Its branch and what was done stay.`;
  const agreed = await confirm({ title: `Cancel ${item.task}?`, text, yes: "Cancel the task", danger: true });
  if (agreed) then("task.cancel", { task: item.task }, `${item.task} is cancelled.`);
}

/** Of a host that is silent. @param {Item} item */
async function forget(item) {
  const host = item.id.slice("host:".length, item.id.lastIndexOf(":"));
  const agreed = await confirm({ title: `Remove ${host}?`, text: "It is listed again when its supervisor starts.", yes: "Remove it", danger: true });
  if (agreed) then("host.forget", { host }, `Removed ${host}.`);
}

export default function Inbox() {
  const items = inbox.value;
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const sections = SECTIONS.map(([name, kinds]) => ({ name, items: (items || []).filter((item) => kinds.includes(item.kind)) }))
    .filter((section) => section.items.length);
  const order = sections.flatMap((section) => section.items);
  const { id: at, index, move, set: setAt } = useCursor(order.map((item) => item.id));
  const chosen = order[index];
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
    { key: "Enter", what: "Open the task, or its changes", run: () => chosen?.task && go(partOf(chosen)) },
    { key: "r", what: "Write an answer", run: () => focusField(list.current) },
    { key: "s", what: "Snooze for an hour", run: () => chosen && snooze(chosen) },
    ...["a", "A", "d", "l", "b", "y", "e", ..."123456789"].map((key) => ({ key, what: WHAT[key] || `Choose answer ${key}`, run: () => press(key) })),
  ], [chosen?.id, order.map((item) => item.id).join()]);
  if (inboxError.value && !items) return html`<${Trouble} error=${inboxError.value} again=${loadInbox} />`;
  return html`<section class="inbox" ref=${list} aria-labelledby="inbox-title">
    <div class="head"><h1 id="inbox-title">Inbox</h1><span class="grow"></span><${NotifyMe} /></div>
    ${!items && html`<${Loading} />`}
    ${items && !order.length && html`<${Empty} title="Nothing needs you"><${Quiet} /><//>`}
    ${sections.map((section) =>
      html`<section key=${section.name} aria-label=${section.name}>
        <h2 class="label">${section.name === ANSWER && !may("answer") ? "Waiting for an answer" : section.name} <span>${section.items.length}</span>
          ${section.name === "Finished" && section.items.length > 1 && html`<button class="quiet" onClick=${() => seen(section.items)}>All seen</button>`}</h2>
        <ul class="cards">${section.items.map((item) =>
          html`<${Row} key=${item.id} item=${item} current=${item === chosen} choose=${() => setAt(item.id)} />`)}</ul>
      </section>`
    )}
    ${inboxGoesOn.value && html`<p class="cut">There is more: it is listed as these are dealt with. <code>fleet inbox</code> lists all.</p>`}
  </section>`;
}

const DIFFS = new Set(["review", "not-landed", "landing", "conflict"]); // whose changes one reads first

/** @param {Item} item */
const partOf = (item) => `/t/${item.task}${DIFFS.has(item.kind) ? "/diff" : ""}`;

/** @type {Record<string, string>} */
const WHAT = { a: "Allow", A: "Allow from now on", d: "Deny", l: "Land, or accept", b: "Send back", y: "Retry, or let it run", e: "Seen" };

/** @param {HTMLElement | null} list */
function focusField(list) {
  const field = list?.querySelector("[aria-current] input");
  if (field instanceof HTMLElement) field.focus();
}

function Quiet() {
  version.value;
  const running = [...tasks.values()].filter((row) => row.state === "running").length;
  const by = counts.value;
  if (loaded.value && !(by.open + by.running + by.review + by.failed + by.done + by.cancelled)) {
    return html`<p>There are no tasks yet. What agents ask, and what they finish, appears here.</p><${AddOne} />`;
  }
  return html`<p>${running ? `${running} running. Questions, failures and finished work appear here.` : "Questions, failures and finished work appear here."}</p>`;
}

const LOOKED_AT = new Set(["permission", "landing", "review", "not-landed"]); // before one acts: see before.js
const WORK = new Set(["review", "not-landed", "failed", "finished"]); // of which one asks what it took

/** How much it changed and cost, and of the chosen one how its gate went. @param {{ task: string, current: boolean }} props */
function Work({ task, current }) {
  version.value;
  const run = tasks.get(task)?.run;
  const { data: gates } = useLoaded(() => (current ? call("task.gates", { task }) : Promise.resolve([])), [task, current]);
  const gate = gates?.find((each) => each.ended);
  const tries = Number(run?.id.split(".").pop() || 0);
  const parts = [
    tries > 1 && `${tries} attempts`,
    run?.added || run?.removed ? html`<span class="plus">+${run.added || 0}</span> <span class="minus">−${run.removed || 0}</span>` : null,
    gate && `gate ${gate.code === 0 ? "passed" : `failed (${gate.code})`} in ${gate.seconds}s`,
    run?.usage.cost ? money(run.usage.cost, run.usage.estimated) : null,
    run?.started_at && run.ended_at ? lasted(run.started_at, run.ended_at) : null,
  ].filter(Boolean);
  return parts.length > 0 && html`<small class="work">${parts.map((part, at) => html`${at > 0 && " · "}${part}`)}</small>`;
}

const loadBefore = () => import("../parts/before.js");

/** What one looks at before one acts on this item, once its code is there. @param {{ item: Item }} props */
function Before({ item }) {
  const { View } = usePart(loadBefore);
  return View && html`<${View} key=${item.id} item=${item} />`;
}

const BEGUN = 12; // pixels: less is an unsteady tap
const FAR = 110; // pixels after which letting go counts

/** A swipe with a finger, to the left: what it does is also on a button. @param {() => void} run @param {() => void} touched what any touch does */
function useSwipe(run, touched) {
  const from = useRef(/** @type {number | null} */ (null));
  const show = (/** @type {any} */ event, /** @type {number} */ by) => {
    const { style, dataset } = event.currentTarget;
    style.transform = by ? `translateX(${by}px)` : "";
    if (by) dataset.swiped = by <= -FAR ? "far" : "near";
    else delete dataset.swiped;
  };
  const by = (/** @type {PointerEvent} */ event) => (from.current === null ? 0 : Math.min(0, event.clientX - from.current));
  return {
    onPointerDown(/** @type {any} */ event) {
      touched();
      from.current = event.pointerType === "touch" && !event.target.closest("input") ? event.clientX : null;
    },
    onPointerMove(/** @type {any} */ event) {
      const moved = by(event);
      if (moved > -BEGUN) return;
      event.currentTarget.setPointerCapture(event.pointerId); // then what is under the finger gets no click
      show(event, moved);
    },
    onPointerUp(/** @type {any} */ event) {
      const far = by(event) <= -FAR;
      from.current = null;
      show(event, 0);
      if (far) run();
    },
    onPointerCancel(/** @type {any} */ event) { // the page scrolls
      from.current = null;
      show(event, 0);
    },
  };
}

const LONG = 30; // characters of an answer that may be cut on its button

/** @param {{ item: Item, current: boolean, choose: () => void }} props */
function Row({ item, current, choose }) {
  const some = doings(item);
  const answers = item.actions.some((each) => each.operation === "message.answer") && may("answer");
  const typed = item.actions.filter((each) => !each.operation && each.name !== "diff");
  const title = item.title && item.title !== item.words ? item.title : "";
  const swipe = useSwipe(() => snooze(item), choose);
  return html`<li class=${`card ${item.severity}`} aria-current=${current ? "true" : undefined} ...${swipe} onFocusIn=${choose}>
    <div class="line">
      <i class="dot"></i>
      ${item.task ? html`<a class="id" href=${`/t/${item.task}`}>${item.task}</a>` : html`<span class="id">${item.kind}</span>`}
      ${title && html`<span class="of">${title}</span>`}
      <span class="grow"></span>
      ${item.given && html`<span class="behind">with ${item.given}</span>`}
      ${(item.behind || 0) > 0 && html`<span class="behind" title="open tasks wait for this one">${item.behind} behind it</span>`}
      ${item.project && html`<span class="project" title=${item.project}>${last(item.project)}</span>`}
      <${Ago} at=${item.since} />
    </div>
    <p class="words">${item.words}${WORK.has(item.kind) && html`<${Work} task=${item.task || ""} current=${current} />`}</p>
    ${current && LOOKED_AT.has(item.kind) && html`<${Before} item=${item} />`}
    ${item.always && may("admin") && html`<p class="soft note"><b>Always</b> answers: <bdi>${item.always}</bdi></p>`}
    ${item.kind === "permission" && may("answer") && !may("admin") && html`<p class="soft note">Only a coordinator may allow this. You may deny it.</p>`}
    <div class="acts">
      ${some.map((each) =>
        html`<button class=${each.primary ? "primary" : ""} title=${each.hint || (each.name.length > LONG ? each.name : undefined)} onClick=${each.run}><span class="name">${each.name}</span>${each.key && html`<kbd>${each.key}</kbd>`}</button>`
      )}
      ${answers && html`<${Write} item=${item} />`}
      ${!some.length && !answers && !["node", "host"].includes(item.kind) && (item.kind !== "permission" || may("answer")) && typed.slice(0, 1).map((each) => html`<${Command} command=${each.command} />`)}
      ${["node", "host"].includes(item.kind) && html`<a class="button quiet" href="/machines">Machines</a>`}
      ${item.task && html`<a class="button quiet" href=${partOf(item)}>${DIFFS.has(item.kind) ? "Changes" : "Open"}</a>`}
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
