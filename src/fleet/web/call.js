// Call operations of the server. Whatever it refuses becomes a `Refusal`, with the next step.
import { signal } from "./vendor/preact.js";

/** @typedef {import("./api.d.ts").Operations} Operations */

const KEY = "fleet.token";

/** Where this tab keeps its token: never in a cookie, which other ports of the host would get. */
export const token = signal(sessionStorage.getItem(KEY) || localStorage.getItem(KEY) || "");
export const signedOut = signal("");

/** @typedef {{ id: number, text: string, fix: string, bad: boolean, undo?: () => void }} Toast */
export const toasts = signal(/** @type {Toast[]} */ ([]));
let count = 0;

/** @param {string} text @param {{ fix?: string, bad?: boolean, undo?: () => void }} [more] */
export function toast(text, { fix = "", bad = false, undo } = {}) {
  const id = ++count;
  toasts.value = [...toasts.value.slice(-3), { id, text, fix, bad, undo }];
  setTimeout(() => dismiss(id), bad ? 12000 : undo ? 8000 : 4000);
}

/** @param {number} id */
export function dismiss(id) {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

/** @param {string} value @param {boolean} [stay] also after this tab is closed */
export function signIn(value, stay = false) {
  signedOut.value = "";
  (stay ? localStorage : sessionStorage).setItem(KEY, value);
  token.value = value;
}

/** Whether it is kept after this tab is closed. */
export const stays = () => localStorage.getItem(KEY) !== null;

/** @param {string} [why] */
export function signOut(why = "") {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
  signedOut.value = why;
  token.value = "";
}

export class Refusal extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    super(problem.detail || problem.title || `The server answered ${status}.`);
    this.status = status;
    this.code = problem.code || "";
    this.fix = problem.fix || "";
  }
}

/**
 * One page of a list, and where the next one begins.
 * @template {keyof Operations} Name
 * @param {Name} name
 * @param {Operations[Name][0]} [fields]
 * @returns {Promise<{ data: Operations[Name][1], next: string }>}
 */
export async function page(name, fields) {
  const answer = await send(`/v1/${name.replace(".", "/")}`, fields || {});
  return { data: answer.data, next: answer.next || "" };
}

/**
 * @template {keyof Operations} Name
 * @param {Name} name
 * @param {Operations[Name][0]} [fields]
 * @returns {Promise<Operations[Name][1]>}
 */
export async function call(name, fields) {
  const key = name + JSON.stringify(fields);
  const early = ahead.get(key);
  ahead.delete(key);
  return early || (await page(name, fields)).data;
}

const FRESH = 5000; // milliseconds
/** @type {Map<string, Promise<any>>} */
const ahead = new Map();

/**
 * Ask already now for what a screen calls for when its code has come; once, and soon.
 * @template {keyof Operations} Name
 * @param {Name} name
 * @param {Operations[Name][0]} fields
 */
export function callAhead(name, fields) {
  const key = name + JSON.stringify(fields);
  const answer = call(name, fields);
  answer.catch(() => {}); // whoever calls for it is told
  ahead.set(key, answer);
  setTimeout(() => ahead.get(key) === answer && ahead.delete(key), FRESH);
}

/**
 * Call it, and tell the person what became of it; undefined when it was refused.
 * @template {keyof Operations} Name
 * @param {Name} name
 * @param {Operations[Name][0]} fields
 * @param {string} [done] what to say when it worked
 * @returns {Promise<Operations[Name][1] | undefined>}
 */
export async function act(name, fields, done = "") {
  try {
    const reply = await call(name, fields);
    if (done) toast(done);
    return reply;
  } catch (error) {
    complain(error);
    return undefined;
  }
}

/** @param {any} error */
export function complain(error) {
  toast(error.message, { fix: error.fix, bad: true });
}

/** @param {string} path @param {unknown} fields @returns {Promise<any>} */
async function send(path, fields) {
  const mine = token.value;
  /** @type {Record<string, string>} */
  const headers = { "Content-Type": "application/json", "Idempotency-Key": random() };
  if (mine) headers["Authorization"] = `Bearer ${mine}`;
  const answer = await reach(path, { method: "POST", headers, body: JSON.stringify(fields) });
  const text = await answer.text();
  /** @type {any} */
  let body = {};
  try {
    body = JSON.parse(text);
  } catch { /* a proxy's page, or nothing: the status says enough */ }
  if (answer.ok) return body;
  const refusal = new Refusal(answer.status, body);
  if (answer.status === 401 && mine === token.value) signOut(refusal.message);
  throw refusal;
}

const PATIENCE = 60_000; // milliseconds for an answer: longer than the server takes for anything
let underway = 0;
let ended = performance.now();
const LONGEST = 3000; // milliseconds: a page in which much happens is never quiet

/** Until nothing was asked for during so many milliseconds. @param {number} time */
export async function quiet(time) {
  const limit = performance.now() + LONGEST;
  for (;;) {
    const left = underway ? time : ended + time - performance.now();
    if (left <= 0 || performance.now() > limit) return;
    await new Promise((done) => setTimeout(done, left));
  }
}

/** @param {string} path @param {RequestInit} options */
async function reach(path, options) {
  underway++;
  try {
    return await fetch(path, { ...options, signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    throw new Refusal(0, {
      detail: "The server does not answer.",
      code: "unreachable",
      fix: "Is `fleet serve` running? The page reconnects by itself.",
    });
  } finally {
    underway--;
    ended = performance.now();
  }
}

/** `crypto.randomUUID` is missing where the page is not on localhost or HTTPS. */
function random() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {string} code one-time, from the address of `fleet ui` */
export async function exchange(code) {
  const answer = await send("/v1/session/open", { code });
  signIn(answer.data.token);
}
