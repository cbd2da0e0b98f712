/** What does the pointer point at? */

import { at, firstAbove, type StepColumns } from "../../../charts/step/columns";
import { actionAt } from "../../../charts/step/detail";
import { type Rows, rowAt } from "../../../charts/step/rows";
import { type TimeWindow, timeAt } from "../../../charts/step/window";

export interface Hovered {
  readonly x: number;
  readonly y: number;
  readonly time_ns: number;
  readonly rank: number;
  /** The action that runs; undefined = the rank is idle, or this is its track of transfers. */
  readonly place: number | undefined;
  /** A place of the transfers. */
  readonly transfer: number | undefined;
}

export function hoveredAt(
  step: StepColumns,
  rows: Rows,
  window: TimeWindow,
  width: number,
  x: number,
  y: number,
): Hovered | undefined {
  const row = rowAt(rows, y);
  if (!row || x < 0 || x > width) return undefined;
  const time_ns = timeAt(x, window, width);
  const place = row.sends ? undefined : actionAt(step, row.rank, time_ns);
  const transfer = row.sends ? transferAt(step, row.rank, time_ns) : undefined;
  return { x, y, time_ns, rank: row.rank, place, transfer };
}

/** The micro-batch under the pointer; -1 = none. */
export function microbatchOf(step: StepColumns, hovered: Hovered | undefined): number {
  if (hovered?.place !== undefined) return at(step.microbatch, hovered.place);
  if (hovered?.transfer !== undefined) return at(step.transfers.microbatch, hovered.transfer);
  return -1;
}

function transferAt(step: StepColumns, rank: number, time_ns: number): number | undefined {
  const { transfers } = step;
  const [low, high] = [at(transfers.offsets, rank), at(transfers.offsets, rank + 1)];
  const last = firstAbove(transfers.start_ns, time_ns, low, high) - 1;
  return last >= low && at(transfers.end_ns, last) >= time_ns ? last : undefined;
}
