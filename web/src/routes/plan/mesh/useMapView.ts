/** Which part of the map is seen?  Kept in the address; buttons and keys glide there, hands move at once. */

import { useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef } from "react";
import type { MapLayout } from "../../../charts/mesh/layout";
import { type Frame, type View, WHOLE, zoomAt } from "../../../charts/mesh/viewport";
import { useKept } from "../../../lib/kept";

const WRITE_AFTER_MS = 250;
const GLIDE_MS = 160;
const STEP = 1.6;

const rounded = ({ zoom, x, y }: View): View => ({
  zoom: Number(zoom.toFixed(3)),
  x: Number(x.toFixed(5)),
  y: Number(y.toFixed(5)),
});

export function useMapView(said: View) {
  const navigate = useNavigate();
  const [view, setView] = useKept<View>(
    said,
    (next) =>
      void navigate({
        to: ".",
        search: (before: object) => ({ ...before, ...rounded(next) }),
        replace: true,
        resetScroll: false,
      }),
    WRITE_AFTER_MS,
  );
  const frame = useRef(0);
  const latest = useRef(view);
  latest.current = view;
  const show = useCallback(
    (next: View) => {
      cancelAnimationFrame(frame.current);
      setView(rounded(next));
    },
    [setView],
  );
  const glide = useCallback(
    (to: View) => {
      const from = latest.current;
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return show(to);
      cancelAnimationFrame(frame.current);
      const begin = performance.now();
      const step = (now: number) => {
        const part = Math.min(1, (now - begin) / GLIDE_MS);
        const eased = 1 - (1 - part) ** 3;
        const mixed = (a: number, b: number) => a + (b - a) * eased;
        setView(rounded({ zoom: mixed(from.zoom, to.zoom), x: mixed(from.x, to.x), y: mixed(from.y, to.y) }));
        if (part < 1) frame.current = requestAnimationFrame(step);
      };
      frame.current = requestAnimationFrame(step);
    },
    [setView, show],
  );
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return useMemo(() => ({ view, show, glide }), [view, show, glide]);
}

/** The views that buttons and keys lead to. */
export function steps(view: View, layout: MapLayout, frame: Frame) {
  const middle = { x: frame.width / 2, y: frame.height / 2 };
  return {
    nearer: zoomAt(view, STEP, middle, layout, frame),
    farther: zoomAt(view, 1 / STEP, middle, layout, frame),
    whole: WHOLE,
  };
}
