import { type KeyboardEvent, type PointerEvent, useRef } from "react";
import { lengthOf, panned, pulled, type Edge as WindowEdge, within } from "../../../charts/step/window";
import type { Movable } from "./useTimeWindow";

const GRIP_PX = 8;
const KEY_SHARE = 0.01;
const STILL_PX = 3;

type Grip = WindowEdge | "both" | "new";

/** Hands on the minimap: an edge is moved, the window is moved, or a new one is drawn. */
export function useBrushing(view: Movable, width: number) {
  const hold = useRef<{ edge: Grip; start: number; last: number; moved: boolean }>(undefined);
  const { end_ns, move } = view;
  const ns = (pixels: number) => (pixels / width) * end_ns;
  const x = (event: PointerEvent<HTMLElement>) =>
    event.clientX - event.currentTarget.getBoundingClientRect().left;
  const grip = (at: number): Grip => {
    const [from, to] = [(view.window.from_ns / end_ns) * width, (view.window.to_ns / end_ns) * width];
    if (Math.abs(at - from) <= GRIP_PX) return "start";
    if (Math.abs(at - to) <= GRIP_PX) return "end";
    const whole = lengthOf(view.window) >= end_ns;
    return at > from && at < to && !whole ? "both" : "new";
  };
  const surface = {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      hold.current = { edge: grip(x(event)), start: x(event), last: x(event), moved: false };
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      const now = hold.current;
      if (!now) return;
      const [here, by] = [x(event), x(event) - now.last];
      now.moved ||= Math.abs(here - now.start) > STILL_PX;
      if (!now.moved) return;
      now.last = here;
      if (now.edge === "new") {
        const [from, to] = [Math.min(now.start, here), Math.max(now.start, here)];
        move(() => within({ from_ns: ns(from), to_ns: ns(to) }, end_ns));
      } else if (now.edge === "both") move((window) => panned(window, ns(by) / lengthOf(window), end_ns));
      else {
        const { edge } = now;
        move((window) => pulled(window, edge, ns(by), end_ns));
      }
    },
    onPointerUp: () => {
      const now = hold.current;
      hold.current = undefined;
      if (!now || now.moved || now.edge !== "new") return;
      // A press without a drag: the window comes here.
      move((window) => panned(window, (ns(now.start) - window.from_ns) / lengthOf(window) - 0.5, end_ns));
    },
    onPointerCancel: () => {
      hold.current = undefined;
    },
  };
  const keys = (edge: WindowEdge) => ({
    onKeyDown: (event: KeyboardEvent) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[
        event.key
      ];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      move((window) => pulled(window, edge, by * KEY_SHARE * end_ns, end_ns));
    },
  });
  return { surface, start: keys("start"), end: keys("end") };
}
