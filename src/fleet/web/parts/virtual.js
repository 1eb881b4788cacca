// Rows of one height, of which only those in sight are in the document.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

const MORE = 8; // rows beyond each edge

/**
 * `at`: the row that keys are for; it comes into sight when it becomes another, which `of` names.
 * @param {{ count: number, height: number, row: (at: number) => any, at?: number, of?: string, label: string, head?: any, foot?: any, atEnd?: () => void }} props
 */
export function Virtual({ count, height, row, at = -1, of = "", label, head = null, foot = null, atEnd }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [seen, setSeen] = useState({ top: 0, size: 1200 });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let asked = 0;
    const look = () => {
      asked ||= requestAnimationFrame(() => {
        asked = 0;
        setSeen({ top: element.scrollTop, size: element.clientHeight });
      });
    };
    element.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => {
      element.removeEventListener("scroll", look);
      observer.disconnect();
      cancelAnimationFrame(asked);
    };
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || at < 0) return;
    const top = at * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + element.clientHeight - height) {
      element.scrollTop = top + 2 * height - element.clientHeight;
    }
  }, [of]);
  const first = Math.max(0, Math.floor(seen.top / height) - MORE);
  const end = Math.min(count, Math.ceil((seen.top + seen.size) / height) + MORE);
  useEffect(() => {
    if (end >= count) atEnd?.();
  }, [end >= count, count]);
  const rows = [];
  for (let index = first; index < end; index++) rows.push(row(index));
  return html`<div class="virtual" ref=${box} role="group" aria-label=${label} tabindex="0">
    <div role="table" aria-label=${label} aria-rowcount=${count + 1}>${head}
      <div class="sheet" role="rowgroup" style=${{ height: `${count * height}px` }}>${rows}</div></div>
    ${foot}
  </div>`;
}

/** @param {number} at @param {number} height */
export const placed = (at, height) => ({ transform: `translateY(${at * height}px)`, height: `${height}px` });
