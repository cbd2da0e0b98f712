/** From which size to which is something measured?  Bars on one logarithmic axis of bytes. */

import { max, min } from "d3-array";
import { scaleLog } from "d3-scale";

export interface SizeRange {
  readonly id: string;
  readonly smallest_bytes: number;
  readonly largest_bytes: number;
}

export function rangeScale(ranges: readonly SizeRange[], left: number, right: number) {
  const low = Math.max(1, min(ranges, (each) => each.smallest_bytes) ?? 1);
  const high = Math.max(low * 2, max(ranges, (each) => each.largest_bytes) ?? 2);
  return scaleLog([low, high], [left, right]).base(2);
}

/** 1 KiB, 32 KiB, ... : powers of 2^5, and only those inside. */
export function byteTicks([low = 1, high = 2]: readonly number[], room: number): readonly number[] {
  const [first, last] = [Math.ceil(Math.log2(low)), Math.floor(Math.log2(high))];
  const step = [2, 5, 10].find((each) => (last - first) / each <= room) ?? 20;
  const ticks: number[] = [];
  for (let octave = Math.ceil(first / step) * step; octave <= last; octave += step) ticks.push(2 ** octave);
  return ticks;
}
