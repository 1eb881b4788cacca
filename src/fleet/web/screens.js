// The screens: their addresses, what loads each, and how the rail names them.
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
