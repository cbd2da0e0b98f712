/** Which part of the step is shown?  A window of time, its zoom and pan, and where a moment lies on the screen. */

export interface TimeWindow {
  readonly from_ns: number;
  readonly to_ns: number;
}

/** Less than this has no use: times are whole nanoseconds. */
const SHORTEST_NS = 1_000;

export function lengthOf(window: TimeWindow): number {
  return window.to_ns - window.from_ns;
}

export function sameWindow(a: TimeWindow, b: TimeWindow): boolean {
  return a.from_ns === b.from_ns && a.to_ns === b.to_ns;
}

/** The same length, or less, within 0 .. `end_ns`. */
export function within({ from_ns, to_ns }: TimeWindow, end_ns: number): TimeWindow {
  const length = Math.min(Math.max(to_ns - from_ns, Math.min(SHORTEST_NS, end_ns)), end_ns);
  const from = Math.round(Math.min(Math.max(from_ns, 0), end_ns - length));
  return { from_ns: from, to_ns: Math.round(from + length) };
}

/** `factor` below 1 comes closer; the moment `about_ns` stays where it is. */
export function zoomed(window: TimeWindow, factor: number, about_ns: number, end_ns: number): TimeWindow {
  const length = Math.max(lengthOf(window) * factor, SHORTEST_NS);
  const share = (about_ns - window.from_ns) / lengthOf(window);
  const from_ns = about_ns - share * length;
  return within({ from_ns, to_ns: from_ns + length }, end_ns);
}

/** Moved by a share of what is shown. */
export function panned(window: TimeWindow, share: number, end_ns: number): TimeWindow {
  const by = share * lengthOf(window);
  return within({ from_ns: window.from_ns + by, to_ns: window.to_ns + by }, end_ns);
}

/** Moved, as little as needed, until `from_ns .. to_ns` is seen with some room; wider if it must be. */
export function showing(window: TimeWindow, from_ns: number, to_ns: number, end_ns: number): TimeWindow {
  const needed = to_ns - from_ns;
  if (needed > lengthOf(window) * 0.8) {
    return within({ from_ns: from_ns - needed, to_ns: to_ns + needed }, end_ns);
  }
  const room = lengthOf(window) * 0.1;
  if (from_ns - room < window.from_ns) {
    return within({ from_ns: from_ns - room, to_ns: from_ns - room + lengthOf(window) }, end_ns);
  }
  if (to_ns + room > window.to_ns) {
    return within({ from_ns: to_ns + room - lengthOf(window), to_ns: to_ns + room }, end_ns);
  }
  return window;
}

export type Edge = "start" | "end";

/** One edge moved; it never passes the other. */
export function pulled(window: TimeWindow, edge: Edge, by_ns: number, end_ns: number): TimeWindow {
  const shortest = Math.min(SHORTEST_NS, end_ns);
  if (edge === "start") {
    const from_ns = Math.min(Math.max(0, window.from_ns + by_ns), window.to_ns - shortest);
    return { from_ns: Math.round(from_ns), to_ns: window.to_ns };
  }
  const to_ns = Math.max(Math.min(end_ns, window.to_ns + by_ns), window.from_ns + shortest);
  return { from_ns: window.from_ns, to_ns: Math.round(to_ns) };
}

export function pixelOf(time_ns: number, window: TimeWindow, width: number): number {
  return ((time_ns - window.from_ns) / lengthOf(window)) * width;
}

export function timeAt(pixel: number, window: TimeWindow, width: number): number {
  return window.from_ns + (pixel / width) * lengthOf(window);
}
