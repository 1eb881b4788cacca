// Rows of one height, of which only those in sight are in the document.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

const MORE = 8; // rows beyond each edge

/**
 * @param {{ count: number, height: number, row: (at: number) => any, at?: number, label: string, role?: string, head?: any, foot?: any, atEnd?: () => void }} props
 */
export function Virtual({ count, height, row, at = -1, label, role = "table", head = null, foot = null, atEnd }) {
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
  }, [at]);
  const first = Math.max(0, Math.floor(seen.top / height) - MORE);
  const end = Math.min(count, Math.ceil((seen.top + seen.size) / height) + MORE);
  useEffect(() => {
    if (end >= count) atEnd?.();
  }, [end >= count, count]);
  const rows = [];
  for (let index = first; index < end; index++) rows.push(row(index));
  return html`<div class="virtual" ref=${box} role=${role} aria-label=${label} aria-rowcount=${role === "table" ? count + 1 : undefined} tabindex="0">
    ${head}
    <div class="sheet" role=${role === "table" ? "rowgroup" : undefined} style=${{ height: `${count * height}px` }}>${rows}</div>
    ${foot}
  </div>`;
}

/** @param {number} at @param {number} height */
export const placed = (at, height) => ({ transform: `translateY(${at * height}px)`, height: `${height}px` });
