/** What would let a plan fit, in the service's words -> what it changes of a typed question. */

import type { Draft } from "../routes/new-plan.search";

export interface WayOut {
  /** As the service says it. */
  readonly words: string;
  readonly change: Partial<Draft>;
}

type Reading = readonly [RegExp, (found: string, draft: Draft) => Partial<Draft>];

const without = (list: string, name: string): string =>
  list
    .split(/[\s,;]+/)
    .filter((each) => each.split("=")[0] !== name)
    .join(" ");
/** 0.06 -> 6, without the digits that binary fractions add. */
const percent = (fraction: string): string => String(Number((Number(fraction) * 100).toPrecision(12)));

/** The sentences of planner/search/infeasible.py. */
const READINGS: readonly Reading[] = [
  [/^use (\d+) devices$/, (devices) => ({ devices })],
  [/^use --backend (\S+)$/, (backend) => ({ backend })],
  [/^halve the sequence length to (\d+)$/, (seq) => ({ seq })],
  [/^drop the pin on (\w+)$/, (name, { pins }) => ({ pins: without(pins, name) })],
  [/^allow (\w+)$/, (name, { forbid }) => ({ forbid: without(forbid, name) })],
  [/^lower --memory-margin to ([\d.]+)$/, (fraction) => ({ margin: percent(fraction) })],
  [/^lower --fits to ([\d.]+)$/, (fraction) => ({ fits: percent(fraction) })],
];

/** Those that change a field of the form; the others are sentences. */
export function waysOut(
  hints: readonly string[],
  draft: Draft,
): { readonly ways: readonly WayOut[]; readonly others: readonly string[] } {
  const ways: WayOut[] = [];
  const others: string[] = [];
  for (const words of hints.flatMap((hint) => hint.split(/; or /))) {
    const change = READINGS.map(([form, make]) => {
      const found = form.exec(words)?.[1];
      return found === undefined ? undefined : make(found, draft);
    }).find((each) => each !== undefined);
    if (change) ways.push({ words, change });
    else others.push(words);
  }
  return { ways, others };
}
