import { type RefObject, useEffect, useRef } from "react";
import { panned, timeAt, zoomed } from "../../../charts/step/window";
import type { Movable } from "./useTimeWindow";

const LINE_PX = 16;
const ZOOM_PER_PX = 1.0015;

/**
 * The wheel zooms about the pointer, sideways it pans.  A page that is being scrolled goes on scrolling: the chart takes
 * the wheel with Ctrl (which is also a pinch), or once it has the focus.
 */
export function useWheel(view: Movable, width: number): RefObject<HTMLDivElement | null> {
  const ref = useRef<HTMLDivElement>(null);
  const { move, end_ns } = view;
  useEffect(() => {
    const element = ref.current;
    if (!element || width <= 0) return;
    const listener = (event: WheelEvent) => {
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
      const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        move((now) => panned(now, (sideways * unit) / width, end_ns));
      } else if (event.ctrlKey || event.metaKey || element === document.activeElement) {
        event.preventDefault();
        const x = event.clientX - element.getBoundingClientRect().left;
        const factor = ZOOM_PER_PX ** (event.deltaY * unit * (event.ctrlKey ? 3 : 1));
        move((now) => zoomed(now, factor, timeAt(x, now, width), end_ns));
      }
    };
    // React listens passively, and what is passive cannot keep the page from scrolling.
    element.addEventListener("wheel", listener, { passive: false });
    return () => element.removeEventListener("wheel", listener);
  }, [move, end_ns, width]);
  return ref;
}
