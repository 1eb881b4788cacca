// Keys. A screen adds its own while it is shown; `?` lists all that count now.
import { signal, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

/** `first`: it counts before another of the same key. @typedef {{ key: string, what: string, run: (event: KeyboardEvent) => void, first?: boolean }} Key */

export const bound = signal(/** @type {Key[]} */ ([]));

/** `keys` count while the component is shown. @param {Key[]} keys @param {unknown[]} deps */
export function useKeys(keys, deps) {
  useLayoutEffect(() => { // before the next key is heard
    bound.value = [...bound.value, ...keys];
    return () => {
      bound.value = bound.value.filter((key) => !keys.includes(key));
    };
  }, deps);
}

/** What a key does now. @param {string} name */
const counting = (name) => {
  const all = bound.value.filter((each) => each.key === name);
  return all.findLast((each) => each.first) || all.at(-1);
};

/** Every key that does something now, once. */
export const listed = () => [...new Set(bound.value.map((each) => each.key))].map((name) => /** @type {Key} */ (counting(name)));

/**
 * The place in a list that keys are for. It stays with its item when others come or go, and where that leaves, there is the next.
 * @param {string[]} ids
 */
export function useCursor(ids) {
  const [id, set] = useState("");
  const last = useRef(0);
  const found = ids.indexOf(id);
  last.current = Math.max(0, found < 0 ? Math.min(last.current, ids.length - 1) : found);
  const index = last.current;
  return { id, set, index, move: (/** @type {number} */ by) => set(ids[Math.max(0, Math.min(index + by, ids.length - 1))] || "") };
}

/** @param {KeyboardEvent} event */
const typed = (event) => (event.ctrlKey || event.metaKey ? `Ctrl-${event.key.toLowerCase()}` : event.key);

addEventListener("keydown", (event) => {
  const at = event.target instanceof Element ? event.target : document.body;
  const writing = at.closest("input, textarea, select, [contenteditable]");
  const name = typed(event);
  if (event.altKey || (writing && !name.startsWith("Ctrl-"))) return;
  if (document.querySelector("dialog[open]") && !name.startsWith("Ctrl-")) return;
  if ((name === "Enter" || name === " ") && at.closest("button, a, summary")) return;
  const key = counting(name);
  if (!key) return;
  event.preventDefault();
  key.run(event);
});
