/** Which way did each part change, and how much?  Bars from a common zero: left is less, right is more. */

import { scaleLinear } from "./scales";

export interface Change {
  readonly name: string;
  readonly value: number;
}

export interface ChangeBar {
  readonly name: string;
  readonly value: number;
  readonly x: number;
  readonly width: number;
}

/** What is less than this part of the largest change is told in the table only. */
const NOTICEABLE = 1e-4;

/** Bars, largest change first, within `left` and `right`; and where zero is. */
export function changeBars(changes: readonly Change[], left: number, right: number) {
  const largest = Math.max(0, ...changes.map((each) => Math.abs(each.value)));
  const shown = changes
    .filter((each) => each.value !== 0 && Math.abs(each.value) >= largest * NOTICEABLE)
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const low = Math.min(0, ...shown.map((each) => each.value));
  const high = Math.max(0, ...shown.map((each) => each.value));
  const scale = scaleLinear([low, high === low ? low + 1 : high], [left, right]);
  const bars: readonly ChangeBar[] = shown.map((each) => ({
    name: each.name,
    value: each.value,
    x: Math.min(scale(0), scale(each.value)),
    width: Math.max(1, Math.abs(scale(each.value) - scale(0))),
  }));
  return { bars, zero: scale(0) };
}
