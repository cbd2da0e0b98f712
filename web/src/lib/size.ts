/** How large is an element now?  For charts, which are functions of data and size. */

import { type RefCallback, useCallback, useState } from "react";

/** Margins of a chart with their labels alone take as much: nothing can be drawn in less. */
const LEAST_PX = 160;

/** Attach `ref`; `width` is 0 until the element is there, has been measured, and has room for a chart. */
export function useWidth<E extends HTMLElement>(): { ref: RefCallback<E>; width: number } {
  const [width, setWidth] = useState(0);
  // A callback, because a chart may come later than the component that asks.
  const ref = useCallback((element: E | null) => {
    if (!element) return;
    // Before the first paint, so that a chart is there from the beginning and what stands below it never moves.
    setWidth(contentWidth(element));
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { ref, width: width < LEAST_PX ? 0 : Math.floor(width) };
}

function contentWidth(element: HTMLElement): number {
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  return element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
}
