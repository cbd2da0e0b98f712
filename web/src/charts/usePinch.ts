/** Two fingers on a chart.  The chart's own hand for one finger asks here first, and rests while there are two. */

import { type PointerEvent, type RefObject, useEffect, useRef } from "react";
import { type Pinch, type Place, pinchBetween } from "./pinch";

export interface Fingers {
  /** Each says whether the event belongs to two fingers: from the second touch until the last finger is lifted. */
  readonly down: (event: PointerEvent<HTMLElement>) => boolean;
  readonly move: (event: PointerEvent<HTMLElement>) => boolean;
  /** Also for a pointer that is cancelled. */
  readonly up: (event: PointerEvent<HTMLElement>) => boolean;
}

export function usePinch(surface: RefObject<HTMLElement | null>, onPinch: (pinch: Pinch) => void): Fingers {
  const places = useRef(new Map<number, Place>());
  const pinched = useRef(false);

  // The first finger may scroll the page; two would zoom it.  React listens passively, which could not refuse that.
  useEffect(() => {
    const element = surface.current;
    if (!element) return;
    const refuse = (event: TouchEvent) => {
      if (event.touches.length > 1 && event.cancelable) event.preventDefault();
    };
    element.addEventListener("touchstart", refuse, { passive: false });
    element.addEventListener("touchmove", refuse, { passive: false });
    return () => {
      element.removeEventListener("touchstart", refuse);
      element.removeEventListener("touchmove", refuse);
    };
  }, [surface]);

  const placeOf = (event: PointerEvent<HTMLElement>): Place => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  return {
    down: (event) => {
      if (event.pointerType !== "touch") return false;
      places.current.set(event.pointerId, placeOf(event));
      pinched.current ||= places.current.size > 1;
      return pinched.current;
    },
    move: (event) => {
      const before = [...places.current];
      if (places.current.has(event.pointerId)) places.current.set(event.pointerId, placeOf(event));
      const [a, b] = before;
      const [c, d] = places.current.values();
      if (a && b && c && d && before.length === 2) onPinch(pinchBetween([a[1], b[1]], [c, d]));
      return pinched.current;
    },
    up: (event) => {
      const was = pinched.current;
      places.current.delete(event.pointerId);
      if (places.current.size === 0) pinched.current = false;
      return was;
    },
  };
}
