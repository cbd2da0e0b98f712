import { useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { sameWindow, type TimeWindow, within } from "../../../charts/step/window";
import { useLater } from "../../../lib/later";

/** The address is written when the hand rests: each writing renders the whole page. */
const REST_MS = 200;

export interface Movable {
  readonly window: TimeWindow;
  readonly end_ns: number;
  /** At most once a frame; what is asked in between counts from the latest. */
  readonly move: (next: (now: TimeWindow) => TimeWindow) => void;
}

/** The part of the step that is shown: the address keeps it, and moving it is faster than the address. */
export function useTimeWindow(asked: TimeWindow, end_ns: number): Movable {
  const navigate = useNavigate();
  const later = useLater();
  const wanted = readWindow(asked, end_ns);
  const [window, setWindow] = useState(wanted);
  const latest = useRef(window);
  const frame = useRef(0);
  const address = useRef(wanted);

  const move = useCallback((next: (now: TimeWindow) => TimeWindow) => {
    latest.current = next(latest.current);
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      setWindow(latest.current);
    });
  }, []);

  // Somebody else changed the address: a link, or back.
  if (!sameWindow(wanted, address.current)) {
    address.current = wanted;
    latest.current = wanted;
    setWindow(wanted);
  }
  useEffect(() => {
    if (sameWindow(window, address.current)) return;
    return later(() => {
      address.current = window;
      const whole = window.from_ns === 0 && window.to_ns === end_ns;
      const kept = whole ? { from_ns: undefined, to_ns: undefined } : window;
      void navigate({
        to: ".",
        search: (before) => ({ ...before, ...kept }),
        replace: true,
        resetScroll: false,
      });
    }, REST_MS);
  }, [window, end_ns, navigate, later]);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return { window, end_ns, move };
}

/** The whole step, if the address says nothing that makes sense. */
function readWindow({ from_ns, to_ns }: TimeWindow, end_ns: number): TimeWindow {
  if (from_ns < 0 || to_ns <= from_ns || from_ns >= end_ns) return { from_ns: 0, to_ns: end_ns };
  return within({ from_ns, to_ns }, end_ns);
}
