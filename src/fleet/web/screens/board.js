// The tasks in columns, by what comes next for them; what a person can do is on the card. State follows from
// what happened, so cards are not dragged between columns: those that wait are dragged to another priority.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { useKeys } from "../keys.js";
import { loadMore } from "../live.js";
import { NORMAL, PRIORITIES, priorityKeys, Rank, setPriority, WORDS } from "../parts/priority.js";
import { Ago, last, Status } from "../parts/show.js";
import { complete, further, inbox, loaded, may, numberOf, tasks } from "../store.js";
import { doings } from "./inbox.js";

/** @typedef {import("../api.d.ts").TaskRow} TaskRow */
/** @typedef {typeof import("../store.js").counts.value} Counts */
/** @typedef {{ dragged: string, drag: (task: string) => void, focus: (task: string) => void }} Hand */

/** @param {TaskRow} row */
const waits = (row) => row.state === "open" && row.status !== "asking";
const WAITING = "Waiting";
const DONE = "Done";
/** @type {[string, (row: TaskRow) => boolean, (by: Counts) => number][]} */
const COLUMNS = [
  [WAITING, waits, (by) => by.open - by.asking],
  ["Running", (row) => row.state === "running", (by) => by.running],
  ["Needs you", (row) => ["asking", "failed"].includes(row.status), (by) => by.asking + by.failed],
  ["Review", (row) => row.status === "review", (by) => by.review],
  ["Landing", (row) => row.status === "landing", (by) => by.landing],
  [DONE, (row) => row.state === "done" && row.status !== "landing", (by) => by.done - by.landing],
];
const MOST_CARDS = 50;
const MOST_ACTIONS = 2;
const SAYS = new Set(["question", "budget", "permission", "failed", "landing"]); // whose words one reads before acting

/** The newest first, but who asks before what failed. @param {TaskRow[]} rows */
const askingFirst = (rows) => [...rows].sort((one, other) => Number(other.status === "asking") - Number(one.status === "asking"));

/** Older pages, while a column has room for cards that it is said to have. @param {TaskRow[]} rows @param {Counts | null} by */
function useCards(rows, by) {
  const lacking = by ? COLUMNS.filter(([, is, all]) => rows.filter(is).length < Math.min(all(by), MOST_CARDS)).map(([name]) => name) : [];
  const lists = /** @type {("active" | "closed")[]} */ ([
    ...(lacking.some((name) => name !== DONE) && !complete.value.active ? ["active"] : []),
    ...(lacking.includes(DONE) && !complete.value.closed ? ["closed"] : []),
  ]);
  const ready = loaded.value && further.value === "";
  useEffect(() => {
    if (ready && lists.length) loadMore(lists);
  }, [ready, lists.join(), tasks.size]);
}

/** `by`: how many there are of all, whether they are loaded or not. @param {{ rows: TaskRow[], by: Counts | null }} props */
export default function Board({ rows, by }) {
  const [dragged, drag] = useState("");
  const [at, setAt] = useState("");
  const row = tasks.get(at);
  useKeys(row && waits(row) && may("assign") ? priorityKeys(row) : [], [at, row?.priority, row?.status]);
  const hand = { dragged, drag, focus: setAt };
  useCards(rows, by);
  return html`<div class="board" role="region" aria-label="Board" tabindex="0">${COLUMNS.map(([name, is, all]) => {
    const mine = askingFirst(rows.filter(is));
    const count = by ? Math.max(all(by), 0) : mine.length;
    const shown = name === WAITING ? inOrder(mine).slice(0, MOST_CARDS) : mine.slice(0, MOST_CARDS);
    return html`<section key=${name} aria-label=${name}><h2 class="label">${name} <span>${count}</span></h2>
      ${name === WAITING ? html`<${Priorities} rows=${shown} hand=${hand} />` : html`<ul>${shown.map((each) => html`<${Card} key=${each.id} row=${each} hand=${hand} />`)}</ul>`}
      ${count > shown.length && html`<p class="soft">and ${count - shown.length} more</p>`}
      ${!count && html`<p class="none">None</p>`}</section>`;
  })}</div>`;
}

/** As they would start: by priority, then the oldest first. @param {TaskRow[]} rows */
const inOrder = (rows) => [...rows].sort((one, other) => one.priority - other.priority || numberOf(one.id) - numberOf(other.id));

/** What waits, by priority; while a card is dragged every priority is there to take it. @param {{ rows: TaskRow[], hand: Hand }} props */
function Priorities({ rows, hand }) {
  const known = Map.groupBy(rows, (row) => row.priority);
  const shown = PRIORITIES.filter((each) => hand.dragged || known.has(each));
  const named = shown.some((each) => each !== NORMAL);
  return shown.map((priority) => html`<${Band} key=${priority} priority=${priority} named=${named} rows=${known.get(priority) || []} hand=${hand} />`);
}

/** @param {{ priority: number, named: boolean, rows: TaskRow[], hand: Hand }} props */
function Band({ priority, named, rows, hand }) {
  const [over, setOver] = useState(false);
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    const row = tasks.get(hand.dragged);
    hand.drag("");
    if (row) setPriority(row, priority);
  };
  return html`<div class=${`band ${over ? "over" : ""} ${hand.dragged ? "open" : ""}`} onDrop=${drop} onDragLeave=${() => setOver(false)}
      onDragOver=${(/** @type {Event} */ event) => hand.dragged && (event.preventDefault(), setOver(true))}>
    ${named && html`<h3>Priority ${WORDS[priority]}</h3>`}
    <ul>${rows.map((row) => html`<${Card} key=${row.id} row=${row} hand=${hand} />`)}</ul></div>`;
}

/** @param {{ row: TaskRow, hand: Hand }} props */
function Card({ row, hand }) {
  const card = useRef(/** @type {HTMLElement | null} */ (null));
  const item = inbox.value?.find((each) => each.task === row.id && each.kind !== "finished");
  const some = item ? doings(item).filter((each) => !each.hint).slice(0, MOST_ACTIONS) : [];
  const asks = item && SAYS.has(item.kind) ? item.words : "";
  const words = asks ? "" : row.waits_for?.length ? `after ${row.waits_for.join(" ")}` : row.state === "running" ? row.run?.last : "";
  const moves = waits(row) && may("assign");
  const lift = (/** @type {DragEvent} */ event) => {
    event.dataTransfer?.setData("text/plain", row.id);
    setTimeout(() => hand.drag(row.id)); // what is dragged must not change in this turn
  };
  return html`<li ref=${card} class="board-card" draggable=${moves} data-lifted=${hand.dragged === row.id || undefined}
      onFocusIn=${() => hand.focus(row.id)} onDragStart=${moves && lift} onDragEnd=${() => hand.drag("")}>
    <span class="line"><span class="id">${row.id}</span><${Rank} priority=${row.priority} /><span class="grow"></span><${Status} status=${row.status} /></span>
    <a href=${`/t/${row.id}`} draggable=${false}><b><bdi>${row.title}</bdi></b></a>
    ${words && html`<small><bdi>${words}</bdi></small>`}
    ${asks && html`<small class="asks"><bdi>${asks}</bdi></small>`}
    ${some.length > 0 && html`<span class="card-acts">${some.map((each) => html`<button key=${each.name} onClick=${each.run} aria-label=${`${each.name}: ${row.id}`}>${each.name}</button>`)}</span>`}
    <span class="line"><small>${row.agent || row.coder}</small><span class="grow"></span><small><span class="project">${last(row.project)} · </span><${Ago} at=${row.created_at} /></small></span></li>`;
}
