/** What do wheel, drag and two fingers mean on the map?  Wheel and fingers zoom where they are, drag moves. */

import { type PointerEvent, type RefObject, useCallback, useEffect, useRef } from "react";
import { usePinch } from "../usePinch";
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
  // Two fingers move twice before the map is drawn again: what comes next counts from the latest.
  const show = useCallback((view: View) => {
    latest.current = { ...latest.current, view };
    latest.current.onView(view);
  }, []);
  const fingers = usePinch(surface, ({ factor, from, dx, dy }) => {
    const { layout, frame, view } = latest.current;
    show(panBy(zoomAt(view, factor, from, layout, frame), dx, dy, layout, frame));
  });
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
      const { layout, frame, view } = latest.current;
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      const box = canvas.getBoundingClientRect();
      const at = { x: event.clientX - box.left, y: event.clientY - box.top };
      const step = Math.max(-120, Math.min(120, event.deltaY * lines));
      show(zoomAt(view, Math.exp(-step * WHEEL_STEP), at, layout, frame));
    };
    canvas.addEventListener("wheel", turn, { passive: false });
    return () => canvas.removeEventListener("wheel", turn);
  }, [surface, show]);

  return {
    /** Whether the press that ends now moved the map. */
    moved: () => wasDrag.current,
    onPointerDown: (event: PointerEvent<HTMLCanvasElement>) => {
      if (fingers.down(event)) {
        drag.current = undefined;
        return;
      }
      if (event.button !== 0) return;
      drag.current = { x: event.clientX, y: event.clientY, moved: false };
      wasDrag.current = false;
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    /** True while the map is moved. */
    onPointerMove: (event: PointerEvent<HTMLCanvasElement>): boolean => {
      if (fingers.move(event)) return true;
      const from = drag.current;
      if (!from) return false;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.hypot(dx, dy) < DRAG_FROM_PX) return false;
      const { layout, frame, view } = latest.current;
      drag.current = { x: event.clientX, y: event.clientY, moved: true };
      show(panBy(view, dx, dy, layout, frame));
      return true;
    },
    onPointerUp: (event: PointerEvent<HTMLCanvasElement>) => {
      wasDrag.current = fingers.up(event) || (drag.current?.moved ?? false);
      drag.current = undefined;
    },
    onPointerCancel: (event: PointerEvent<HTMLCanvasElement>) => {
      fingers.up(event);
      drag.current = undefined;
    },
  };
}
