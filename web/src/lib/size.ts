/** How large is an element now?  For charts, which are functions of data and size. */

import { type RefCallback, useCallback, useState } from "react";

/** Attach `ref`; `width` is 0 until the element is there and has been measured. */
export function useWidth<E extends HTMLElement>(): { ref: RefCallback<E>; width: number } {
  const [width, setWidth] = useState(0);
  // A callback, because a chart may come later than the component that asks.
  const ref = useCallback((element: E | null) => {
    if (!element) return;
    // Before the first paint, so that a chart is there from the beginning and what stands below it never moves.
    setWidth(Math.floor(contentWidth(element)));
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}

function contentWidth(element: HTMLElement): number {
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  return element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
}
