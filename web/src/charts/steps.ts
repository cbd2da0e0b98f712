/** How does a value stand over time?  Until it changes it stays: a line of steps. */

import { scaleLinear } from "./scales";

export interface Reading {
  /** Seconds since the beginning. */
  readonly at_s: number;
  readonly value: number;
}

export interface Box {
  readonly width: number;
  readonly height: number;
}

/** Room for the labels of the axes. */
export const MARGIN = { left: 64, right: 12, top: 8, bottom: 24 };

export function stepScales(series: readonly (readonly Reading[])[], end_s: number, { width, height }: Box) {
  const values = series.flat().map((each) => each.value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = high > low ? (high - low) * 0.08 : Math.abs(high) * 0.05 || 1;
  return {
    x: scaleLinear([0, Math.max(end_s, 0.001)], [MARGIN.left, width - MARGIN.right]),
    y: scaleLinear([low - room, high + room], [height - MARGIN.bottom, MARGIN.top]).nice(4),
  };
}

export function stepPath(
  readings: readonly Reading[],
  end_s: number,
  scales: ReturnType<typeof stepScales>,
): string {
  const last = readings.at(-1);
  if (!last) return "";
  const [first, ...rest] = [...readings, { at_s: end_s, value: last.value }].map(
    (each) => [scales.x(each.at_s), scales.y(each.value)] as const,
  );
  return first ? `M${first[0]},${first[1]}${rest.map(([x, y]) => `H${x}V${y}`).join("")}` : "";
}
