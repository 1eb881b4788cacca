// Addresses of the screens, without loading the page again.
import { signal } from "./vendor/preact.js";

export const path = signal(location.pathname);
export const query = signal(location.search);

/** @param {string} to @param {{ replace?: boolean }} [how] */
export function go(to, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  read();
  if (!replace) document.querySelector("main")?.scrollTo(0, 0);
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
