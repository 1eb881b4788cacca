// The screens: their addresses, what loads each, how the rail names them, and how one goes there without loading the page again.
import { signal } from "./vendor/preact.js";
import { may } from "./store.js";

/**
 * `letter`: after `g`, it goes there. `needs`: without this permission it is neither named nor shown.
 * @typedef {{ at: RegExp, load: () => Promise<any>, to?: string, name?: string, icon?: string, letter?: string, needs?: string }} ScreenOf
 */

/** @type {ScreenOf[]} */
export const SCREENS = [
  { at: /^\/$/, load: () => import("./screens/inbox.js"), to: "/", name: "Inbox", icon: "inbox", letter: "i" },
  { at: /^\/tasks$/, load: () => import("./screens/tasks.js"), to: "/tasks", name: "Tasks", icon: "tasks", letter: "t" },
  { at: /^\/t\/([^/]+)(?:\/([a-z]+))?$/, load: () => import("./screens/task.js") },
  { at: /^\/land$/, load: () => import("./screens/land.js"), to: "/land", name: "Land", icon: "land", letter: "l" },
  { at: /^\/machines$/, load: () => import("./screens/machines.js"), to: "/machines", name: "Machines", icon: "machines", letter: "m" },
  { at: /^\/costs$/, load: () => import("./screens/costs.js"), to: "/costs", name: "Costs", icon: "costs", letter: "c" },
  { at: /^\/team$/, load: () => import("./screens/team.js"), to: "/team", name: "Team", icon: "team", letter: "e" },
];

/** Those that the rail names, for who is signed in. */
export const rail = () =>
  /** @type {Required<ScreenOf>[]} */ (SCREENS.filter((each) => each.name && (!each.needs || may(each.needs))));

/** The screen of an address, and the words in it. @param {string} path */
export function screenAt(path) {
  for (const screen of SCREENS) {
    const match = screen.at.exec(path);
    if (match && (!screen.needs || may(screen.needs))) {
      return { screen, words: match.slice(1).map((word) => word && decodeURIComponent(word)) };
    }
  }
  return null;
}

export const path = signal(location.pathname);
export const query = signal(location.search);

/** The first word of an address. @param {string} at */
const screenOf = (at) => at.split("/")[1];

/** @param {string} to @param {{ replace?: boolean }} [how] */
export function go(to, { replace = false } = {}) {
  const before = screenOf(path.value);
  history[replace ? "replaceState" : "pushState"](null, "", to);
  read();
  if (replace) return;
  const main = document.querySelector("main");
  main?.scrollTo(0, 0);
  if (screenOf(path.value) !== before) main?.focus({ preventScroll: true }); // a screen reader reads on there
}

function read() {
  path.value = location.pathname;
  query.value = location.search;
}

addEventListener("popstate", read);
addEventListener("click", (event) => {
  const anchor = event.target instanceof Element && event.target.closest("a[href^='/']");
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
  if (!anchor || !plain || event.defaultPrevented || anchor.hasAttribute("target")) return;
  event.preventDefault();
  go(anchor.getAttribute("href") || "/");
});
