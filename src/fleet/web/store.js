// What the page knows: the rows of tasks by id, and what needs a person. Nothing is fetched here.
import { batch, computed, signal } from "./vendor/preact.js";

/** @typedef {import("./api.d.ts").TaskRow} TaskRow */
/** @typedef {import("./api.d.ts").InboxItem} Item */

/** @type {Map<string, TaskRow>} */
export const tasks = new Map();
export const version = signal(0); // of `tasks`
export const loaded = signal(false); // whether all tasks in view have come

export const complete = signal({ active: false, closed: false }); // whether every such task is in `tasks`
export const further = signal(""); // loading: further tasks come; full: the page holds no more
export const counted = signal(/** @type {import("./api.d.ts").Counts | null} */ (null)); // as the server counts

export const inbox = signal(/** @type {Item[] | null} */ (null));
export const inboxGoesOn = signal(false); // whether it has more than is here
export const inboxError = signal(/** @type {Error | null} */ (null));
export const overlay = signal(""); // what is shown over the page: keys, new or palette
export const connection = signal("connecting"); // live, connecting or lost
export const stoodAt = signal(0); // when the rows were last those of the server, once it is lost
export const me = signal(/** @type {import("./api.d.ts").Me | null} */ (null)); // null: not known yet
export const heard = signal(/** @type {{ type: string, task: string }[]} */ ([])); // the newest events
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 5000);

/** @param {TaskRow[]} rows */
export function put(rows) {
  if (!rows.length) return;
  batch(() => {
    for (const row of rows) tasks.set(row.id, row);
    version.value++;
  });
}

/** Those that the server no longer lists. @param {Set<string>} ids */
export function keepOnly(ids) {
  for (const id of tasks.keys()) if (!ids.has(id)) tasks.delete(id);
  version.value++;
}

/** Whether the server would let this person do it; until that is known, no. @param {string} permission */
export const may = (permission) => me.value?.permissions.includes(permission) || false;

/** Not given to somebody else. @param {Item} item */
export const isMine = ({ given }) => !given || given === me.value?.name;

/** How many tasks of each kind there are, whether they are here or not. */
export const counts = computed(() => {
  version.value;
  const here = { open: 0, running: 0, review: 0, done: 0, failed: 0, cancelled: 0, ready: 0, asking: 0, held: 0, landing: 0 };
  const server = counted.value;
  if (server && !(complete.value.active && complete.value.closed)) {
    return { ...here, ...server, held: server.held_back || 0 };
  }
  for (const row of tasks.values()) {
    here[/** @type {"open"} */ (row.state)]++;
    if (row.status !== row.state && row.status in here) here[/** @type {"ready"} */ (row.status)]++;
  }
  return here;
});

/** The number in a task's id: a larger one is newer. @param {string} id */
export const numberOf = (id) => Number(id.slice(id.lastIndexOf("-") + 1)) || 0;
