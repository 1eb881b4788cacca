// The browser's own notifications of what newly needs a person, while the page is open and out of sight.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { go } from "../router.js";
import { inbox, isMine } from "../store.js";
import { harmless } from "./format.js";

/** @typedef {import("../api.d.ts").InboxItem} Item */

const URGENT = new Set(["question", "permission", "budget", "failed", "landing", "node"]);

/** `default`: nobody was asked yet; empty where a browser has none, or not on this address. */
const permission = () => ("Notification" in globalThis && isSecureContext ? Notification.permission : "");

/** @param {Item} item */
function tell(item) {
  try {
    const note = new Notification(harmless(item.title || item.task || "Fleet"), { body: harmless(item.words.slice(0, 200)), tag: item.id });
    note.onclick = () => {
      focus();
      go(item.task ? `/t/${item.task}` : "/");
      note.close();
    };
  } catch { /* a phone shows them only for installed apps */ }
}

/** Of items that came since the page was opened. */
export function useNotices() {
  const known = useRef(/** @type {Set<string> | null} */ (null));
  const items = inbox.value;
  useEffect(() => {
    if (!items) return;
    const before = known.current;
    known.current = new Set(items.map((item) => item.id));
    if (!before || !document.hidden || permission() !== "granted") return;
    items.filter((item) => URGENT.has(item.kind) && isMine(item) && !before.has(item.id)).slice(0, 5).forEach(tell);
  }, [items]);
}

/** Asks for the permission, once; nothing where it was given or refused. */
export function NotifyMe() {
  const [state, setState] = useState(permission());
  if (state !== "default") return null;
  const ask = () => Notification.requestPermission().then(setState);
  return html`<button class="quiet" title="While this page is open and out of sight" onClick=${ask}>Notify me</button>`;
}
