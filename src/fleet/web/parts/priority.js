// How soon a task starts among those that are ready: 0 is first, 4 is last, 2 is what nobody changed.
import { html } from "../vendor/preact.js";
import { act } from "../call.js";
import { may, put } from "../store.js";

/** @typedef {import("../api.d.ts").TaskRow} TaskRow */

export const NORMAL = 2;
export const PRIORITIES = [0, 1, NORMAL, 3, 4];
export const WORDS = ["0, first", "1", "2, normal", "3", "4, last"];

/** @param {TaskRow} row @param {number} priority */
export async function setPriority(row, priority) {
  if (priority === row.priority || !PRIORITIES.includes(priority)) return;
  const changed = await act("task.edit", { task: row.id, priority }, `${row.id} has priority ${WORDS[priority]}.`);
  if (changed) put([changed]);
}

/** @param {TaskRow} row @returns {import("../keys.js").Key[]} */
export const priorityKeys = (row) => [
  { key: "+", what: "Start it sooner: raise its priority", run: () => setPriority(row, row.priority - 1) },
  { key: "-", what: "Start it later: lower its priority", run: () => setPriority(row, row.priority + 1) },
];

/** To choose it, of a task that has not ended. @param {{ row: TaskRow }} props */
export function Priority({ row }) {
  if (!may("assign") || ["done", "cancelled"].includes(row.state)) return WORDS[row.priority];
  return html`<select class="small" aria-label="Priority" value=${row.priority} onChange=${(/** @type {any} */ event) => setPriority(row, Number(event.target.value))}>
    ${PRIORITIES.map((each) => html`<option value=${each}>${WORDS[each]}</option>`)}</select>`;
}

/** Nothing for the normal one. @param {{ priority: number }} props */
export const Rank = ({ priority }) =>
  priority !== NORMAL && html`<span class=${`tag rank ${priority < NORMAL ? "warn" : ""}`} title=${`Priority ${WORDS[priority]}`}>P${priority}</span>`;
