/** What do the charts say, in words? */

import { count, percent, plural } from "../../lib/format";
import { errorFigures, errorOf, figuresOf, type Run, type TimedRun, verdictsOf } from "./runs";

const direction = (bias: number, low: string, high: string): string =>
  `${percent(Math.abs(bias))} too ${bias < 0 ? low : high}`;

export function timeSentence(runs: readonly TimedRun[], level: number): string {
  const { n, median, p90, bias, inside } = figuresOf(runs);
  return `${plural(n, "run")}: median error ${percent(median)}, nine in ten within ${percent(p90)}, on average ${direction(bias ?? 0, "fast", "slow")}; ${percent(inside, 0)} of the measured times lie in their interval of ${percent(level, 0)}.`;
}

export function memorySentence(runs: readonly (Run & { measured_peak_memory_bytes: number })[]): string {
  const { n, median, p90, bias } = errorFigures(
    runs.map((run) => errorOf(run.predicted_peak_memory_bytes, run.measured_peak_memory_bytes)),
  );
  return `${plural(n, "run")} with a measured peak: median error ${percent(median)}, nine in ten within ${percent(p90)}, on average ${direction(bias ?? 0, "low", "high")}.`;
}

export function verdictSentence(runs: readonly Run[]): string {
  const { died, diedForeseen, ran, ranRefused } = verdictsOf(runs);
  if (died + ran === 0) return "No run says whether it fits.";
  const foreseen =
    died > 0
      ? `${count(diedForeseen)} of ${count(died)} that ran out of memory were foreseen`
      : "None ran out of memory";
  return `${foreseen}; ${count(ranRefused)} of ${count(ran)} that ran would have been refused.`;
}
