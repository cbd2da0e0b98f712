/** What do wheel and drag mean on the map?  Wheel zooms where the pointer is, drag moves. */

import { type PointerEvent, type RefObject, useEffect, useRef } from "react";
import type { MapLayout } from "./layout";
import { type Frame, panBy, type View, zoomAt } from "./viewport";

interface Map {
  readonly layout: MapLayout;
  readonly frame: Frame;
  readonly view: View;
  readonly onView: (view: View) => void;
}

/** Less is a click of a hand that is not quite still. */
const DRAG_FROM_PX = 4;
const WHEEL_STEP = 0.0016;

export function useMapGestures(surface: RefObject<HTMLCanvasElement | null>, map: Map) {
  const latest = useRef(map);
  latest.current = map;
  const drag = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined);
  const wasDrag = useRef(false);

  // React listens to wheels passively, which could not keep the page from scrolling.
  useEffect(() => {
    const canvas = surface.current;
    if (!canvas) return;
    const turn = (event: WheelEvent) => {
      // Without focus the wheel belongs to the page, which would otherwise be caught on the map.
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      const { layout, frame, view, onView } = latest.current;
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      const box = canvas.getBoundingClientRect();
      const at = { x: event.clientX - box.left, y: event.clientY - box.top };
      const step = Math.max(-120, Math.min(120, event.deltaY * lines));
      onView(zoomAt(view, Math.exp(-step * WHEEL_STEP), at, layout, frame));
    };
    canvas.addEventListener("wheel", turn, { passive: false });
    return () => canvas.removeEventListener("wheel", turn);
  }, [surface]);

  return {
    /** Whether the press that ends now moved the map. */
    moved: () => wasDrag.current,
    onPointerDown: (event: PointerEvent<HTMLCanvasElement>) => {
      if (event.button !== 0) return;
      drag.current = { x: event.clientX, y: event.clientY, moved: false };
      wasDrag.current = false;
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    /** True while the map is dragged. */
    onPointerMove: (event: PointerEvent<HTMLCanvasElement>): boolean => {
      const from = drag.current;
      if (!from) return false;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.hypot(dx, dy) < DRAG_FROM_PX) return false;
      const { layout, frame, view, onView } = latest.current;
      drag.current = { x: event.clientX, y: event.clientY, moved: true };
      onView(panBy(view, dx, dy, layout, frame));
      return true;
    },
    onPointerUp: () => {
      wasDrag.current = drag.current?.moved ?? false;
      drag.current = undefined;
    },
    onPointerCancel: () => {
      drag.current = undefined;
    },
  };
}
