/**
 * Which choices are worth having: none is both faster and smaller?  And where do they lie on step time x peak memory?
 *
 * Choices far beyond the limit would press all others into a corner: they stand on the upper edge, marked as beyond it.
 */

import { scaleLinear } from "./scales";

export interface ChoicePoint {
  readonly id: string;
  readonly step_time_s: number;
  readonly peak_memory_bytes: number;
  /** It could run: it is within memory and within what the question allows. */
  readonly fits: boolean;
}

export interface ParetoMark<P extends ChoicePoint> {
  readonly point: P;
  readonly x: number;
  readonly y: number;
  /** Needs more memory than the axis shows. */
  readonly beyond: boolean;
}

export interface Box {
  readonly width: number;
  readonly height: number;
}

export const PARETO_MARGIN = { left: 66, right: 16, top: 22, bottom: 40 };
/** The axis of memory ends at so many times the limit. */
const HIGHEST = 1.4;
const GIB = 2 ** 30;

/** Of those that fit: every one that no other beats in time and in memory, fastest first. */
export function paretoFront<P extends ChoicePoint>(points: readonly P[]): readonly P[] {
  const byTime = points
    .filter((each) => each.fits)
    .sort((a, b) => a.step_time_s - b.step_time_s || a.peak_memory_bytes - b.peak_memory_bytes);
  let least = Number.POSITIVE_INFINITY;
  return byTime.filter((each) => {
    if (each.peak_memory_bytes >= least) return false;
    least = each.peak_memory_bytes;
    return true;
  });
}

export function paretoLayout<P extends ChoicePoint>(points: readonly P[], limit_bytes: number, box: Box) {
  const times = points.map((each) => each.step_time_s);
  const sizes = points.map((each) => each.peak_memory_bytes).filter((each) => each <= limit_bytes * HIGHEST);
  const [fastest, slowest] = [Math.min(...times), Math.max(...times)];
  const room = (slowest - fastest) * 0.05 || fastest * 0.02;
  const [least, most] = [Math.min(limit_bytes, ...sizes), Math.max(limit_bytes, ...sizes)];
  const air = (most - least) * 0.08 || most * 0.05;
  const x = scaleLinear(
    [fastest - room, slowest + room],
    [PARETO_MARGIN.left, box.width - PARETO_MARGIN.right],
  );
  const y = scaleLinear(
    [Math.max(0, (least - air) / GIB), (most + air) / GIB],
    [box.height - PARETO_MARGIN.bottom, PARETO_MARGIN.top],
  ).nice(5);
  const top = (y.domain()[1] ?? 0) * GIB;
  const place = (point: P): ParetoMark<P> => {
    const beyond = point.peak_memory_bytes > top;
    return {
      point,
      x: x(point.step_time_s),
      y: beyond ? PARETO_MARGIN.top : y(point.peak_memory_bytes / GIB),
      beyond,
    };
  };
  return {
    x,
    y,
    marks: points.map(place),
    front: paretoFront(points).map(place),
    limit: y(limit_bytes / GIB),
  };
}

/** The front as stairs: between two choices on it, nothing is known to be smaller than the faster one. */
export function stairs(front: readonly { readonly x: number; readonly y: number }[], end: number): string {
  const [first, ...rest] = front;
  if (!first) return "";
  return `M${first.x} ${first.y}${rest.map((each) => `H${each.x}V${each.y}`).join("")}H${end}`;
}

/** The mark nearest to a place, within `reach` px. */
export function nearest<M extends { readonly x: number; readonly y: number }>(
  marks: readonly M[],
  at: { readonly x: number; readonly y: number },
  reach = 24,
): M | undefined {
  let best: M | undefined;
  let least = reach;
  for (const mark of marks) {
    const distance = Math.hypot(mark.x - at.x, mark.y - at.y);
    if (distance <= least) [best, least] = [mark, distance];
  }
  return best;
}

interface Placeable {
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

const LETTER_PX = 6.4;
const LINE_PX = 15;
/** Half a mark. */
const MARK_PX = 6;

/** Names beside their marks: right, left, above or below, wherever they hit no mark and no name placed before; else none. */
export function placeLabels<L extends Placeable>(
  wanted: readonly L[],
  marks: readonly { readonly x: number; readonly y: number }[],
  box: Box,
): readonly (L & { left: number; base: number })[] {
  const taken = marks.map(({ x, y }) => ({
    left: x - MARK_PX,
    right: x + MARK_PX,
    top: y - MARK_PX,
    bottom: y + MARK_PX,
  }));
  return wanted.flatMap((each) => {
    const length = each.text.length * LETTER_PX;
    const spots = [
      [each.x + 10, each.y + 4],
      [each.x - 10 - length, each.y + 4],
      [each.x - length / 2, each.y - 11],
      [each.x - length / 2, each.y + 20],
    ] as const;
    for (const [left, base] of spots) {
      const area = { left, right: left + length, top: base - LINE_PX + 3, bottom: base + 3 };
      const inside = left >= PARETO_MARGIN.left && area.right <= box.width && area.top >= 0;
      const free = taken.every(
        (other) =>
          area.right < other.left ||
          area.left > other.right ||
          area.bottom < other.top ||
          area.top > other.bottom,
      );
      if (inside && free) {
        taken.push(area);
        return [{ ...each, left, base }];
      }
    }
    return [];
  });
}
