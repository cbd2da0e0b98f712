/** What is said about each file of an import?  Words and lists for the page; every number is the service's. */

import type { FileOutcome } from "../../api/queries/uploads";
import { count, plural } from "../../lib/format";

/** "64 collectives, topology". */
export function contentWords({ counts, topology }: FileOutcome): string {
  const rows = Object.entries(counts)
    .filter(([, number]) => number > 0)
    .map(([kind, number]) => plural(number, kind.replace(/s$/, "")));
  return [...rows, ...(topology === null ? [] : [topology])].join(", ");
}

/** What a reader of the numbers should know. */
export function remarks(outcome: FileOutcome): readonly string[] {
  const flags = outcome.flags.map(({ line, what }) => (line == null ? what : `line ${count(line)}: ${what}`));
  const skipped = Object.entries(outcome.skipped).map(([why, number]) => `${count(number)} left out: ${why}`);
  const bad = outcome.bad_rows.map(({ where, what }) => `bad: ${where}: ${what}`);
  const more = outcome.num_bad_rows - outcome.bad_rows.length;
  const removed = Object.entries(outcome.redactions).map(([kind, number]) => `${count(number)} ${kind}`);
  return [
    ...outcome.also_looks_like.map((format) => `also looks like ${format}`),
    ...flags,
    ...skipped,
    // Of a refused file they are its findings already.
    ...(outcome.findings.length > 0 ? [] : bad),
    ...(more > 0 && outcome.findings.length === 0 ? [plural(more, "more bad row")] : []),
    ...(removed.length > 0 ? [`removed from texts: ${removed.join(", ")}`] : []),
    ...(outcome.devices.includes("") ? ["the device is not known: no plan uses it until it is named"] : []),
  ];
}

export const isRefused = ({ status }: FileOutcome) => status === "refused" || status === "not recognised";
