// The socket: rows of tasks as they change, what happened, and what the screen in view watches.
import { effect } from "./vendor/preact.js";
import { call, page, signIn, stays, token } from "./call.js";
import { path } from "./router.js";
import { complete, connection, counted, further, heard, inbox, inboxError, inboxGoesOn, keepOnly, loaded, me, put, stoodAt, tasks } from "./store.js";

const INBOX = 400; // milliseconds after a change until the inbox is asked for
const PAGE = 200;
const MOST = 10_000; // tasks that the page holds
const COUNT = 1000; // milliseconds after a change until the tasks are counted
const QUIET = 5000; // milliseconds without a word of the server until it is asked for one
const DEADLINE = 8000; // and until it must have answered: one that hangs closes nothing

/** @type {WebSocket | null} */
let socket = null;
let tries = 0;
let retry = 0;
let word = Date.now(); // when the server was last heard
let pinged = 0; // when a word of it was asked for that has not come
let looking = 0;
let asked = 0; // when all was asked for, if the socket was not there yet to tell what changed since

/**
 * The lists that the page loads: what people look for first, then the newest of the others, page by page.
 * @type {Record<"first" | "active" | "closed", { fields: import("./api.d.ts").ListTasks, next: string, count: number }>}
 */
const LISTS = {
  first: { fields: { statuses: ["running", "review", "failed", "asking", "held", "landing"] }, next: "", count: 0 },
  active: { fields: { all: false }, next: "", count: 0 },
  closed: { fields: { statuses: ["done", "cancelled"] }, next: "", count: 0 },
};
let reading = 0; // which reading of everything is the newest

/** Everything anew: at the start, and when events may have been missed. As many pages as were there. */
export async function loadTasks() {
  const mine = ++reading;
  const ids = new Set();
  await Promise.all([
    loadCounts(),
    ...Object.values(LISTS).filter(isWanted).map(async (list) => {
      const most = Math.max(1, list.count);
      list.next = "";
      list.count = 0;
      do {
        for (const row of await loadPage(list, mine)) ids.add(row.id);
      } while (list.next && list.count < most && list !== LISTS.first && mine === reading);
    }),
  ]);
  if (mine !== reading) return;
  loaded.value = true;
  keepOnly(ids);
  tellComplete();
}

/** The others are loaded once a screen shows them, with `loadMore`. @param {typeof LISTS.first} list */
const isWanted = (list) => list === LISTS.first || list.count > 0 || (list === LISTS.active && path.value === "/tasks");

/** @param {typeof LISTS.first} list @param {number} mine */
async function loadPage(list, mine) {
  const { data, next } = await page("task.list", { ...list.fields, limit: PAGE, before: list.next });
  if (mine !== reading) return [];
  list.next = next;
  list.count++;
  put(data);
  if (!loaded.value) performance.mark("rows");
  return data;
}

function tellComplete() {
  complete.value = { active: LISTS.active.count > 0 && !LISTS.active.next, closed: LISTS.closed.count > 0 && !LISTS.closed.next };
}

/** Whether some of these have come. @param {"active" | "closed"} name */
export const begun = (name) => LISTS[name].count > 0;

/** @param {typeof LISTS.first} list */
const hasMore = (list) => list.next !== "" || list.count === 0;

/** @type {Promise<void> | null} */
let loadingMore = null;

/** The next page of these; with `all`, every page, but never more than the page holds. @param {("active" | "closed")[]} names @param {boolean} [all] */
export function loadMore(names, all = false) {
  loadingMore ||= (async () => {
    await null; // so that it ends after this function has
    const mine = reading;
    further.value = "loading";
    try {
      do {
        for (const name of names) if (hasMore(LISTS[name]) && tasks.size < MOST) await loadPage(LISTS[name], mine);
        tellComplete();
      } while (all && mine === reading && tasks.size < MOST && names.some((name) => hasMore(LISTS[name])));
    } finally {
      further.value = tasks.size >= MOST ? "full" : "";
      loadingMore = null;
    }
  })();
  return loadingMore.catch(() => {});
}

let counting = 0;

/** How many tasks there are, of which the page may hold only some. */
async function loadCounts() {
  counted.value = await call("task.counts");
}

/** After a change of a status, and only while not every row is here. */
function countLater() {
  if (complete.value.active && complete.value.closed) return;
  counting ||= setTimeout(() => {
    counting = 0;
    loadCounts().catch(() => {});
  }, COUNT);
}

const RENEW = 6 * 3600e3; // milliseconds before a session ends in which it is continued

/** Who is signed in. A session that ends soon is continued. */
async function loadMe() {
  me.value = await call("me.show");
  const left = me.value.until ? Date.parse(me.value.until) - Date.now() : Infinity;
  if (left < RENEW) {
    const renewed = await call("session.renew").catch(() => null); // a pasted token is no session
    if (renewed) signIn(renewed.token, stays());
  }
}

/** Every kind: finished work is listed to those who ask for it. @type {import("./api.d.ts").ListInbox["kinds"]} */
const KINDS = [
  "question", "permission", "first-start", "panel", "budget", "failed", "conflict", "landing", "node", "host", "untrusted", "held",
  "review", "not-landed", "finished",
];
let asking = false;
let askAgain = false;

/** One at a time: it asks git, so it may take a while. */
export async function loadInbox() {
  if (asking) {
    askAgain = true;
    return;
  }
  asking = true;
  try {
    const { data, next } = await page("inbox.list", { limit: PAGE, kinds: KINDS });
    inbox.value = data;
    inboxGoesOn.value = next !== "";
    inboxError.value = null;
  } catch (error) {
    inboxError.value = /** @type {Error} */ (error);
  } finally {
    asking = false;
    if (askAgain) {
      askAgain = false;
      loadInbox();
    }
  }
}

function connect() {
  clearTimeout(retry);
  const mine = token.value;
  if (!mine || socket) return;
  connection.value = tries ? "lost" : "connecting";
  const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;
  const opened = new WebSocket(address);
  socket = opened;
  pinged = Date.now();
  opened.onopen = () => opened.send(JSON.stringify({ type: "auth", token: mine, state: false }));
  opened.onmessage = (event) => {
    word = Date.now();
    pinged = 0;
    hear(JSON.parse(event.data));
  };
  opened.onclose = () => lose(Date.now());
}

/** `at`: until when all that happened was heard. @param {number} at */
function lose(at) {
  socket = null;
  if (!token.value) return;
  if (connection.value === "live") stoodAt.value = at;
  connection.value = "lost";
  retry = setTimeout(connect, Math.min(200 * 2 ** Math.min(tries++, 5), 2000));
}

/** Whether the server still answers: a socket to one that hangs, or behind a lost network, looks alive for minutes. */
function beat() {
  if (!socket) return;
  if (!pinged && Date.now() - word > QUIET) {
    pinged = Date.now();
    say({ type: "ping" });
  } else if (pinged && Date.now() - pinged > DEADLINE) {
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    lose(word);
  }
}

const LONG = 600; // seconds after which all is loaded again

/** The seconds whose changes the rows may lack; 0 when they are to be loaded. */
function since() {
  const seconds = Math.ceil((performance.now() - asked) / 1000) + 1;
  return asked && seconds < LONG ? seconds : 0;
}

/** @param {any} frame */
function hear(frame) {
  switch (frame.type) {
    case "authenticated":
      tries = 0;
      connection.value = "live";
      say({ type: "subscribe", topic: "team" });
      say({ type: "watch", rows: { since: since() } });
      watched.forEach(({ kind, name, after }) => say({ type: "watch", [kind]: name, after: after() }));
      if (!since()) refresh();
      asked = 0;
      return;
    case "watching":
      if (frame.changed) lookAtInbox();
      return;
    case "rows":
      if (frame.rows.some((/** @type {any} */ row) => tasks.get(row.id)?.status !== row.status)) countLater();
      put(frame.rows);
      return;
    case "reload":
      loadTasks().catch(() => {});
      return;
    case "said":
    case "screen":
    case "nodes":
    case "land":
    case "traces":
      watched.forEach((each) => each.kind === frame.type && each.name === (frame.run || frame.page?.run || "") && each.hear(frame));
      return;
    case "error":
      if (frame.code === "revoked_token" || frame.code === "expired_token") refresh(); // 401 signs out
      return;
  }
  if (frame.event) gather(frame.event);
}

/** @typedef {{ kind: "said" | "screen" | "nodes" | "land" | "traces", name: string, after: () => number, hear: (frame: any) => void }} Watched */
/** @type {Set<Watched>} */
const watched = new Set();

/** @param {unknown} frame */
function say(frame) {
  if (socket?.readyState === WebSocket.OPEN && connection.value === "live") socket.send(JSON.stringify(frame));
}

/**
 * Hear what a run says, what its screen shows, or how the machines are, until the function that this answers is called.
 * `after`: the last line that is known. @param {Watched} one
 */
export function watch(one) {
  watched.add(one);
  say({ type: "watch", [one.kind]: one.name, after: one.after() });
  return () => {
    watched.delete(one);
    say({ type: "unwatch", [one.kind]: one.name });
  };
}

/** @param {{ number: number, type: string, task: string }} event */
function gather(event) {
  heard.value = [...heard.value.slice(-50), event];
  looking ||= setTimeout(lookAtInbox, INBOX);
}

function lookAtInbox() {
  looking = 0;
  loadInbox();
}

function refresh() {
  const failed = () => {
    asked = 0; // then it is asked for again, once the socket is there
  };
  loadMe().catch(failed);
  loadTasks().catch(failed);
  loadInbox();
}

/** At the start all is asked for at once, while the socket connects. */
function enter() {
  if (socket) return;
  asked = performance.now() || 1;
  refresh();
  connect();
}

export function begin() {
  effect(() => {
    if (token.value) enter();
    else socket?.close();
  });
  setInterval(beat, 1000);
  setInterval(() => connection.value === "live" && loadMe().catch(() => {}), 3600e3);
  addEventListener("online", connect);
  addEventListener("offline", () => socket?.close()); // it would look alive for minutes
  document.addEventListener("visibilitychange", () => document.hidden || connect());
}
