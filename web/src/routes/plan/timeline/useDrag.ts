import { type PointerEvent, useRef } from "react";
import { panned, timeAt, within } from "../../../charts/step/window";
import type { Fingers } from "../../../charts/usePinch";
import type { Movable } from "./useTimeWindow";

/** Pixels of the surface. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

interface Hand {
  view: Movable;
  width: number;
  fingers: Fingers;
  /** What Shift and a drag have marked; undefined when it ends. */
  onRange: (range: Range | undefined) => void;
  onPoint: (x: number, y: number) => void;
  onLeave: () => void;
  /** A press that moved nothing. */
  onPress: (x: number, y: number) => void;
}

const STILL_PX = 4;

/** A drag pans; with Shift it marks what to zoom to; without moving it is a press.  Two fingers are no drag. */
export function useDrag({ view, width, fingers, onRange, onPoint, onLeave, onPress }: Hand) {
  const drag = useRef<{ pointer: number; start: number; last: number; marks: boolean; moved: boolean }>(
    undefined,
  );
  const place = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const end = () => {
    drag.current = undefined;
    onRange(undefined);
  };
  return {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      if (fingers.down(event)) return end();
      if (event.button !== 0 || drag.current) return;
      const { x } = place(event);
      event.currentTarget.setPointerCapture(event.pointerId);
      drag.current = { pointer: event.pointerId, start: x, last: x, marks: event.shiftKey, moved: false };
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      if (fingers.move(event)) return onLeave();
      const { x, y } = place(event);
      const now = drag.current;
      if (!now) return onPoint(x, y);
      if (now.pointer !== event.pointerId) return;
      now.moved ||= Math.abs(x - now.start) > STILL_PX;
      if (!now.moved) return;
      onLeave();
      if (now.marks) onRange({ from: Math.min(x, now.start), to: Math.max(x, now.start) });
      else {
        const by = now.last - x;
        view.move((window) => panned(window, by / width, view.end_ns));
      }
      now.last = x;
    },
    onPointerUp: (event: PointerEvent<HTMLElement>) => {
      if (fingers.up(event)) return;
      const now = drag.current;
      if (!now || now.pointer !== event.pointerId) return;
      const { x, y } = place(event);
      if (!now.moved) onPress(x, y);
      else if (now.marks) {
        const [from, to] = [Math.min(x, now.start), Math.max(x, now.start)];
        view.move((window) =>
          within({ from_ns: timeAt(from, window, width), to_ns: timeAt(to, window, width) }, view.end_ns),
        );
      }
      end();
    },
    onPointerCancel: (event: PointerEvent<HTMLElement>) => {
      fingers.up(event);
      end();
    },
    onPointerLeave: () => {
      if (!drag.current) onLeave();
    },
  };
}
