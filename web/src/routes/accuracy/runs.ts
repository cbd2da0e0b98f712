/**
 * Which runs are shown, and how large are their errors?
 *
 * The figures are those of the API's groups (error = |predicted / measured - 1|, bias = geometric mean of predicted /
 * measured, less one), but of any choice of runs; the browser tests hold them against the API's own.
 */

import type { Schemas } from "../../api/client";
import type { Pair } from "../../charts/agreement";
import type { AccuracyState, Axis } from "../accuracy.search";

export type Report = Schemas["AccuracyReport"];
export type Run = Schemas["AccuracyRow"];
/** A run whose step time was measured. */
export type TimedRun = Run & { measured_step_time_s: number };

const NOT_STATED = "not stated";

export interface Figures {
  readonly n: number;
  readonly median: number | undefined;
  readonly p90: number | undefined;
  readonly mean: number | undefined;
  readonly bias: number | undefined;
  /** Part of the measured times inside their interval. */
  readonly inside: number | undefined;
}

export interface Verdicts {
  readonly died: number;
  readonly diedForeseen: number;
  readonly ran: number;
  readonly ranRefused: number;
}

export const isTimed = (run: Run): run is TimedRun => run.measured_step_time_s !== null;

/** What a run is called on an axis.  Only a report by source names publications; others give the whole reference. */
export function keyOf(report: Report, axis: Axis): (run: Run) => string {
  if (axis === "source") return report.by === "source" ? (run) => run.group : (run) => run.source;
  return (run) => run[axis] ?? NOT_STATED;
}

/** Each run as a mark of a chart, told apart by its source. */
export function pairsOf<R extends Run>(
  report: Report,
  runs: readonly R[],
  values: (run: R) => readonly [measured: number, predicted: number],
): Pair[] {
  const series = keyOf(report, "source");
  return runs.map((run) => {
    const [measured, predicted] = values(run);
    return { id: run.id, measured, predicted, series: series(run) };
  });
}

export function chosenRuns(report: Report, wanted: AccuracyState): Run[] {
  const chosen = (["source", "device", "model"] as const)
    .filter((axis) => wanted[axis] !== "")
    .map((axis) => ({ key: keyOf(report, axis), value: wanted[axis] }));
  return report.rows.filter(
    (run) => run.fitted === wanted.fitted && chosen.every(({ key, value }) => key(run) === value),
  );
}

export const isInside = (run: TimedRun): boolean =>
  run.interval[0] <= run.measured_step_time_s && run.measured_step_time_s <= run.interval[1];

/** Predicted / measured, less one: positive = predicted too slow. */
export const errorOf = (predicted: number, measured: number): number => predicted / measured - 1;

export const timeError = (run: TimedRun): number =>
  errorOf(run.predicted_step_time_s, run.measured_step_time_s);

export function figuresOf(runs: readonly TimedRun[]): Figures {
  return {
    ...errorFigures(runs.map(timeError)),
    inside: runs.length > 0 ? runs.filter(isInside).length / runs.length : undefined,
  };
}

/** The value below which a part of the sorted values lies; between two values in proportion. */
function quantileSorted(sorted: readonly number[], part: number): number | undefined {
  const at = (sorted.length - 1) * part;
  const [below, above] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return below === undefined || above === undefined ? undefined : below + (above - below) * (at % 1);
}

export function errorFigures(errors: readonly number[]): Omit<Figures, "inside"> {
  const n = errors.length;
  const sizes = errors.map(Math.abs).sort((a, b) => a - b);
  const sum = (values: readonly number[]) => values.reduce((total, each) => total + each, 0);
  return {
    n,
    median: quantileSorted(sizes, 0.5),
    p90: quantileSorted(sizes, 0.9),
    mean: n > 0 ? sum(sizes) / n : undefined,
    bias: n > 0 ? Math.expm1(sum(errors.map(Math.log1p)) / n) : undefined,
  };
}

/** Of runs whose verdict does not hang on what they leave unsaid. */
export function verdictsOf(runs: readonly Run[]): Verdicts {
  const judged = runs.filter((run) => run.fits_judged);
  const died = judged.filter((run) => run.ran_out_of_memory);
  const ran = judged.filter((run) => !run.ran_out_of_memory);
  return {
    died: died.length,
    diedForeseen: died.filter((run) => !run.fits).length,
    ran: ran.length,
    ranRefused: ran.filter((run) => !run.fits).length,
  };
}

export interface Group extends Figures {
  readonly group: string;
}

/** The largest first. */
export function groupsOf(runs: readonly TimedRun[], key: (run: Run) => string): Group[] {
  const members = new Map<string, TimedRun[]>();
  for (const run of runs) {
    const name = key(run);
    members.set(name, [...(members.get(name) ?? []), run]);
  }
  return [...members]
    .map(([name, each]) => ({ group: name, ...figuresOf(each) }))
    .sort((a, b) => b.n - a.n || a.group.localeCompare(b.group));
}

export function sortedGroups(groups: readonly Group[], by: keyof Group, descending: boolean): Group[] {
  const sign = descending ? -1 : 1;
  return groups.toSorted((a, b) => {
    const [x, y] = [a[by] ?? 0, b[by] ?? 0];
    return sign * (typeof x === "string" ? x.localeCompare(String(y)) : x - Number(y));
  });
}
