/** Where do the bars of a tornado stand?  One row a lever, the widest first, all on one scale around no change. */

import { scaleLinear } from "../scales";

export interface TornadoPoint {
  /** By how much the input is off, as a fraction. */
  readonly change: number;
  /** What that does, as a fraction; undefined = no number. */
  readonly effect: number | undefined;
  readonly verdict: Verdict;
}

/** What becomes of the plan: it stays best, another is better, or it does not even fit. */
export type Verdict = "unasked" | "stays" | "flips" | "unfit";

export interface TornadoRow {
  readonly name: string;
  readonly lowest: number;
  readonly highest: number;
  readonly points: readonly TornadoPoint[];
}

export interface Box {
  readonly width: number;
  /** Room for the names, left of the bars; 0 = names stand above them. */
  readonly names: number;
}

export const ROW_PX = 44;
export const NAME_PX = 20;
export const AXIS_PX = 24;
const END_PX = 56;

export function tornadoLayout(rows: readonly TornadoRow[], { width, names }: Box) {
  const reached = rows.flatMap((row) => [
    row.lowest,
    row.highest,
    ...row.points.map((each) => each.effect ?? 0),
  ]);
  const low = Math.min(-0.001, ...reached);
  const high = Math.max(0.001, ...reached);
  const x = scaleLinear([low, high], [names + END_PX, width - END_PX]);
  const rowHeight = ROW_PX + (names === 0 ? NAME_PX : 0);
  return {
    x,
    ticks: x.ticks(Math.max(2, Math.min(6, Math.floor((width - names) / 110)))),
    height: AXIS_PX + rows.length * rowHeight,
    rowHeight,
    rows: rows.map((row, index) => ({
      row,
      y: AXIS_PX + index * rowHeight + (names === 0 ? NAME_PX : 0),
      // Effects of opposite changes are drawn in two shades: what slows down, and what speeds up.
      bars: [
        { kind: "faster" as const, from: x(Math.min(0, row.lowest)), to: x(0) },
        { kind: "slower" as const, from: x(0), to: x(Math.max(0, row.highest)) },
      ].filter((bar) => bar.to - bar.from > 0.2),
    })),
  };
}

/** Points on one place would hide each other: those that are nearer than this stand beside each other. */
export function spread(xs: readonly number[], nearest: number): readonly number[] {
  const order = xs.map((_, index) => index).sort((a, b) => (xs[a] as number) - (xs[b] as number) || a - b);
  const placed = [...xs];
  for (let at = 1; at < order.length; at++) {
    const [before, here] = [order[at - 1] as number, order[at] as number];
    placed[here] = Math.max(placed[here] as number, (placed[before] as number) + nearest);
  }
  // What was pushed to the right goes back by half, so that the heap stays where its points are.
  const pushed = order.reduce((sum, index) => sum + (placed[index] as number) - (xs[index] as number), 0);
  return placed.map((each) => each - pushed / Math.max(1, xs.length));
}
