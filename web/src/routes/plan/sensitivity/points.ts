/** What do the API's points say, row by row?  A search under one change at a time is put into the picture of all. */

import type { Sensitivity, SensitivityPoint } from "../../../api/queries/sensitivity";
import type { TornadoRow, Verdict } from "../../../charts/tornado/layout";

/** "10,20" -> [-0.2, -0.1, 0.1, 0.2]. */
export function changesOf(reach: string): readonly number[] {
  const sizes = reach.split(",").map((each) => Number(each) / 100);
  return [...sizes.map((each) => -each).reverse(), ...sizes];
}

const same = (a: SensitivityPoint, b: SensitivityPoint): boolean =>
  a.lever === b.lever && Math.abs(a.change - b.change) < 1e-9;

/** All points; those that were searched again replace those that were only estimated. */
export function mergedPoints(
  estimated: readonly SensitivityPoint[],
  searched: readonly SensitivityPoint[],
): readonly SensitivityPoint[] {
  return estimated.map((each) => searched.find((other) => same(each, other)) ?? each);
}

export function verdictOf(point: SensitivityPoint): Verdict {
  if (point.stays_best === false) return "flips";
  if (!point.fits) return "unfit";
  return point.stays_best === true ? "stays" : "unasked";
}

export function tornadoRows(view: Sensitivity, points: readonly SensitivityPoint[]): readonly TornadoRow[] {
  return view.tornado.map((row) => ({
    name: row.lever,
    lowest: row.lowest,
    highest: row.highest,
    points: points
      .filter((each) => each.lever === row.lever)
      .map((each) => ({
        change: each.change,
        effect: each.time_per_token_change ?? undefined,
        verdict: verdictOf(each),
      })),
  }));
}

/** What becomes of the plan at a point, in words. */
export function verdictWords(point: SensitivityPoint): string {
  const other = "another plan is best";
  switch (verdictOf(point)) {
    case "stays":
      return "stays best";
    case "flips":
      return point.fits ? other : `does not fit; ${point.best_step_time_s == null ? "no plan does" : other}`;
    case "unfit":
      return "does not fit";
    default:
      return "fits";
  }
}
