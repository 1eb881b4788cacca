// Rows of any height, of which only those in sight are in the document. The heights are measured.
import { useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { elementScroll, measureElement, observeElementOffset, observeElementRect, Virtualizer } from "../vendor/virtual.js";

/**
 * @param {{ count: number, estimate: (at: number) => number, key: (at: number) => string | number, box: { current: HTMLElement | null }, padding?: number }} given
 */
export function useRows({ count, estimate, key, box, padding = 0 }) {
  const [, redraw] = useState(0);
  const made = useRef(/** @type {any} */ (null));
  const options = {
    count, getItemKey: key, estimateSize: estimate, getScrollElement: () => box.current, overscan: 12,
    observeElementRect, observeElementOffset, scrollToFn: elementScroll, measureElement, paddingEnd: padding,
    initialRect: { width: 800, height: 900 }, onChange: () => redraw((before) => before + 1),
  };
  if (made.current) made.current.setOptions(options);
  else made.current = new Virtualizer(options);
  useLayoutEffect(() => made.current._didMount(), []);
  useLayoutEffect(() => made.current._willUpdate());
  return made.current;
}
