/**
 * How much of a rank is drawn one by one?  Actions that have room are; where there are more of them than pixels, each
 * strip of pixels shows how its time is shared instead.  Either way a rank costs no more than its width.
 */

import { at, firstAbove, type StepColumns } from "./columns";
import { lengthOf, type TimeWindow } from "./window";

/** Actions of a rank in a window: places `first .. end`. */
export interface Visible {
  readonly first: number;
  readonly end: number;
}

export function visibleOf(step: StepColumns, rank: number, window: TimeWindow): Visible {
  const [low, high] = [at(step.offsets, rank), at(step.offsets, rank + 1)];
  const first = firstAbove(step.end_ns, window.from_ns, low, high);
  return { first, end: Math.max(first, firstAbove(step.start_ns, window.to_ns, first, high)) };
}

/** Pixels that an action needs on average to be drawn by itself. */
const ROOM_PX = 3;

export function isCrowded(visible: Visible, width: number): boolean {
  return (visible.end - visible.first) * ROOM_PX > width;
}

/** Equal parts of time, beginning at or before a window. */
export interface Strips {
  readonly from_ns: number;
  readonly strip_ns: number;
  readonly count: number;
}

const NARROWEST_PX = 2;
/** Fewer actions in a strip, and neighbouring strips differ by chance. */
const ACTIONS_A_STRIP = 6;

/**
 * Strips for a crowded rank.  They lie on multiples of a length that only some zooms change, so that they stand still
 * under a window that is panned.
 */
export function stripsOf(visible: Visible, window: TimeWindow, width: number): Strips {
  const actions = Math.max(1, visible.end - visible.first);
  const wanted_px = Math.max(NARROWEST_PX, (ACTIONS_A_STRIP * width) / actions);
  const wanted_ns = (wanted_px / width) * lengthOf(window);
  const strip_ns = 2 ** (Math.round(Math.log2(wanted_ns) * 2) / 2);
  const from_ns = Math.floor(window.from_ns / strip_ns) * strip_ns;
  return { from_ns, strip_ns, count: Math.ceil((window.to_ns - from_ns) / strip_ns) };
}

/** The share of each kind in each strip: kind k of strip s at `s * kinds + k`.  What is missing to 1 is idle. */
export function sharesOf(step: StepColumns, rank: number, strips: Strips): Float64Array {
  const kinds = step.kinds.length;
  const { from_ns, strip_ns, count } = strips;
  const shares = new Float64Array(count * kinds);
  const { first, end } = visibleOf(step, rank, { from_ns, to_ns: from_ns + count * strip_ns });
  let place = first;
  for (let strip = 0; strip < count; strip++) {
    const from = from_ns + strip * strip_ns;
    const to = from + strip_ns;
    while (place < end && at(step.end_ns, place) <= from) place++;
    let last = place;
    while (last < end && at(step.start_ns, last) < to) last++;
    if (last === place) continue;
    for (let kind = 0; kind < kinds; kind++) {
      const sums = step.before_ns[kind];
      if (sums) shares[strip * kinds + kind] = (at(sums, last) - at(sums, place)) / strip_ns;
    }
    // The first and the last action may reach beyond the strip.
    cut(
      shares,
      strip * kinds + at(step.kind, place),
      Math.max(0, from - at(step.start_ns, place)) / strip_ns,
    );
    cut(
      shares,
      strip * kinds + at(step.kind, last - 1),
      Math.max(0, at(step.end_ns, last - 1) - to) / strip_ns,
    );
  }
  return shares;
}

function cut(shares: Float64Array, index: number, by: number): void {
  shares[index] = Math.max(0, at(shares, index) - by);
}

/** The shares of all ranks together. */
export function sharesOfAll(step: StepColumns, strips: Strips): Float64Array {
  const sum = new Float64Array(strips.count * step.kinds.length);
  for (let rank = 0; rank < step.num_ranks; rank++) {
    const own = sharesOf(step, rank, strips);
    for (let index = 0; index < sum.length; index++)
      sum[index] = at(sum, index) + at(own, index) / step.num_ranks;
  }
  return sum;
}

/** The place of the action that rank `rank` runs at a moment, or undefined when it is idle. */
export function actionAt(step: StepColumns, rank: number, time_ns: number): number | undefined {
  const [low, high] = [at(step.offsets, rank), at(step.offsets, rank + 1)];
  const place = firstAbove(step.end_ns, time_ns, low, high);
  return place < high && at(step.start_ns, place) <= time_ns ? place : undefined;
}

/** The action of a rank that begins next to a moment. */
export function actionNear(step: StepColumns, rank: number, time_ns: number): number {
  const [low, high] = [at(step.offsets, rank), at(step.offsets, rank + 1)];
  const after = Math.min(firstAbove(step.start_ns, time_ns, low, high), high - 1);
  const before = Math.max(low, after - 1);
  return time_ns - at(step.start_ns, before) < at(step.start_ns, after) - time_ns ? before : after;
}
