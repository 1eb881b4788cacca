// Small things that every screen shows: a status, a time, money, an empty state, an icon.
import { html, options, useEffect, useState } from "../vendor/preact.js";
import { call, Refusal, toast } from "../call.js";
import { connection, may, now, overlay } from "../store.js";
import { duration, harmless } from "./format.js";

export { duration, harmless, last, money, short } from "./format.js";

/** @typedef {import("../api.d.ts").TaskRow} TaskRow */

/** The colour of each status; the word stands beside it always. @type {Record<string, string>} */
const TONES = {
  running: "busy", starting: "busy", stopping: "busy", children: "busy",
  asking: "warn", held: "warn", review: "accent", landing: "accent",
  failed: "bad", done: "good", landed: "good",
  ready: "plain", waiting: "plain", postponed: "plain", assigned: "plain", paused: "plain",
  cancelled: "off", dropped: "off", queued: "accent", returned: "warn", testing: "busy", passed: "good",
};

/** @param {{ status: string }} props */
export const Status = ({ status }) =>
  html`<span class=${`status ${TONES[status] || "plain"}`}><i></i>${status}</span>`;

/** @param {string | null | undefined} from @param {string | null} [to] */
export function lasted(from, to) {
  if (!from) return "";
  const end = to ? Date.parse(to) : now.value;
  const seconds = (end - Date.parse(from)) / 1000;
  if (seconds < 3600) {
    const whole = Math.max(0, Math.floor(seconds));
    return whole < 60 ? `${whole}s` : `${Math.floor(whole / 60)}m ${String(whole % 60).padStart(2, "0")}s`;
  }
  return `${Math.floor(seconds / 3600)}h ${String(Math.floor(seconds / 60) % 60).padStart(2, "0")}m`;
}

/** @param {{ at: string | null | undefined }} props */
export function Ago({ at }) {
  if (!at) return null;
  const seconds = (now.value - Date.parse(at)) / 1000;
  const full = new Date(at).toLocaleString();
  return html`<time datetime=${at} title=${full}>${seconds < 5 ? "now" : duration(seconds)}</time>`;
}

/** @param {{ icon?: string, title: string, children?: any }} props */
export const Empty = ({ icon = "check", title, children }) =>
  html`<div class="empty"><${Icon} name=${icon} tone=${icon === "check" ? "done" : ""} /><h2>${title}</h2><div>${children}</div></div>`;

/** For who has no task yet. */
export const AddOne = () => may("add") && html`<button class="primary" onClick=${() => (overlay.value = "new")}><${Icon} name="plus" />Add a task<kbd>n</kbd></button>`;

/** @param {{ rows?: number }} props */
export const Loading = ({ rows = 4 }) =>
  html`<div aria-busy="true" role="status" aria-label="Loading">${Array.from({ length: rows }, () => html`<div class="skeleton"></div>`)}</div>`;

/** @param {{ error: any, again?: () => void }} props */
export const Trouble = ({ error, again }) =>
  html`<div class="trouble" role="alert">
    <b>${error.message}</b>
    ${error.fix && html`<p>${error.fix}</p>`}
    ${again && html`<button onClick=${again}>Try again</button>`}
  </div>`;

/** @param {{ command: string }} props */
export function Command({ command }) {
  const copy = async () => {
    await navigator.clipboard?.writeText(command).catch(() => {});
    toast("Copied.");
  };
  return html`<span class="command"><code>${command}</code
    ><button class="quiet" onClick=${copy} title="Copy" aria-label=${`Copy: ${command}`}><${Icon} name="copy" /></button></span>`;
}

/** The next step: a command, or words. @param {{ fix: string }} props */
export const Fix = ({ fix }) => (fix.startsWith("fleet ") ? html`<${Command} command=${fix} />` : html`<span class="soft">${fix}</span>`);

/**
 * What `load` answers, loaded again when `deps` change; `again` loads it now.
 * @template T @param {() => Promise<T>} load @param {unknown[]} deps
 */
export function useLoaded(load, deps) {
  const [state, setState] = useState(/** @type {{ data?: T, error?: Error }} */ ({}));
  const [round, setRound] = useState(0);
  useEffect(() => {
    let gone = false;
    load().then(
      (data) => gone || setState({ data }),
      (error) => gone || setState((before) => ({ data: before.data, error })),
    );
    return () => {
      gone = true;
    };
  }, [...deps, round]);
  return { ...state, again: () => setRound((before) => before + 1) };
}

const SELDOM = 10_000; // milliseconds between two loads of the whole page
const LOADED_AGAIN = "fleet.loaded-again";

/** Of code that could not be had. @param {string} next what happens then */
export const absent = (next) =>
  new Refusal(0, { detail: "This part of the page is not there.", fix: `The server does not answer, or was updated: ${next}.` });

/**
 * What a module shows, once its code is here. When that cannot be had, the whole page is loaded again as soon as the
 * server answers: it may have been updated, and has other files then. @param {(() => Promise<any>) | null | undefined} load
 */
export function usePart(load) {
  const [state, setState] = useState(/** @type {{ load?: any, View?: any, error?: Error }} */ ({}));
  useEffect(() => {
    let gone = false;
    load?.().then(
      (module) => gone || setState({ load, View: module.default }),
      () => gone || setState({ load, error: absent("the page loads again by itself") }),
    );
    return () => {
      gone = true;
    };
  }, [load]);
  const mine = state.load === load ? state : {};
  const live = connection.value === "live";
  useEffect(() => {
    if (mine.error && live) call("me.show").then(loadAgain, () => {});
  }, [mine.error, live]);
  return mine;
}

function loadAgain() {
  if (Date.now() - Number(sessionStorage.getItem(LOADED_AGAIN)) < SELDOM) return;
  sessionStorage.setItem(LOADED_AGAIN, String(Date.now()));
  location.reload();
}

/** @type {Record<string, string>} */
const PATHS = {
  inbox: "M3 12h5l1.5 3h5L16 12h5M5 5h14l2 7v6a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1v-6z",
  tasks: "M4 6h16M4 12h16M4 18h10",
  land: "M4 19h16M12 4v10m0 0 4-4m-4 4-4-4",
  machines: "M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01",
  costs: "M12 3v18M16.5 7.5C16 6 14.5 5 12 5c-2.5 0-4.5 1.3-4.5 3.3C7.5 12.5 16.8 10.5 16.8 15c0 2.3-2.2 4-4.8 4s-4.8-1.400-5-3.3",
  team: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-3.3 2.7-6 6-6s6 2.7 6 6M16 4.5a3.3 3.3 0 0 1 0 6.3M18 14.5c1.900.9 3 2.900 3 5.5",
  plus: "M12 5v14M5 12h14", search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  check: "M5 12.5l4.5 4.5L19 7.5", x: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10v10H9zM5 15V5h10", chevron: "M9 6l6 6-6 6", up: "M12 19V6m0 0-5 5m5-5 5 5",
  pause: "M8 5v14M16 5v14", play: "M7 5l12 7-12 7z", clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2",
  terminal: "M4 5h16v14H4zM7.5 9.500l3 2.500-3 2.500M12.500 15h4", graph: "M4 4h6v5H4zM14 15h6v5h-6zM4 15h6v5H4zM7 9v6M10 6.500h7v8.500",
  theme: "M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9z", out: "M15 4h4v16h-4M10 8l-4 4 4 4M6 12h9",
};

/** @param {{ name: string, tone?: string }} props */
export const Icon = ({ name, tone = "" }) =>
  html`<svg class=${`icon ${tone}`} viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;

/** Make every text of the page harmless, wherever it comes from: asked of each node before it is shown. */
export function showHidden() {
  options.vnode = (/** @type {any} */ node) => {
    if (node.type === null && typeof node.props === "string") node.props = harmless(node.props);
  };
}

const THEME = "fleet.theme"; // where it is kept

/** Light or dark: as the system is, until a person chooses. */
export function readTheme() {
  const theme = localStorage.getItem(THEME);
  if (theme) document.documentElement.dataset.theme = theme;
}

export function turnTheme() {
  const scheme = getComputedStyle(document.documentElement).colorScheme;
  const dark = scheme === "light" || (scheme !== "dark" && !matchMedia("(prefers-color-scheme: dark)").matches);
  localStorage.setItem(THEME, dark ? "dark" : "light");
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
