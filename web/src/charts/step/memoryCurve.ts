/** How does the memory of a rank stand over the window?  A line of steps with a few points a pixel. */

import { at, firstAbove, type RankMemory } from "./columns";
import { pixelOf, type TimeWindow } from "./window";

export interface CurvePoint {
  readonly x: number;
  readonly bytes: number;
}

/** Bytes that the rank holds at a moment. */
export function bytesAt(memory: RankMemory, time_ns: number): number {
  const after = firstAbove(memory.at_ns, time_ns, 0, memory.at_ns.length);
  return after === 0 ? memory.resident_bytes : at(memory.bytes, after - 1);
}

/** Corners of the line, left to right; within a pixel only the least and the most count. */
export function memoryCurve(memory: RankMemory, window: TimeWindow, width: number): readonly CurvePoint[] {
  const first = firstAbove(memory.at_ns, window.from_ns, 0, memory.at_ns.length);
  const end = firstAbove(memory.at_ns, window.to_ns, first, memory.at_ns.length);
  let bytes = bytesAt(memory, window.from_ns);
  const points: CurvePoint[] = [{ x: 0, bytes }];
  let change = first;
  while (change < end) {
    const pixel = Math.floor(pixelOf(at(memory.at_ns, change), window, width));
    const x = pixelOf(at(memory.at_ns, change), window, width);
    let [least, most, last] = [bytes, bytes, bytes];
    const before = bytes;
    while (change < end && Math.floor(pixelOf(at(memory.at_ns, change), window, width)) === pixel) {
      last = at(memory.bytes, change);
      least = Math.min(least, last);
      most = Math.max(most, last);
      change++;
    }
    points.push({ x, bytes: before });
    if (most > Math.max(before, last)) points.push({ x, bytes: most });
    if (least < Math.min(before, last)) points.push({ x, bytes: least });
    points.push({ x, bytes: last });
    bytes = last;
  }
  points.push({ x: width, bytes });
  return points;
}
