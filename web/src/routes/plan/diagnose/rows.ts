/** What is drawn of a diagnosis: the parts of the step twice on one axis, and the time of each rank. */

import type { Diagnosis } from "../../../api/queries/diagnosis";
import type { Piece } from "../../../charts/stack";
import { type Look, lookOf, TIME_TERMS } from "../../../charts/terms";

type Term = Diagnosis["terms"][number];
type Rank = Diagnosis["ranks"][number];

/** What a trace tells apart otherwise than a plan. */
const MEASURED_TERMS: Readonly<Record<string, Look>> = {
  ...TIME_TERMS,
  pp: { ...TIME_TERMS.pp_bubble, label: "Pipeline: waiting and sends" },
  other: { label: "Communication of no axis", colour: "var(--series-7)", hatch: "cross" },
  idle: { ...TIME_TERMS.host, label: "Gaps: waiting for the host" },
};

export const RANK_PARTS: Readonly<Record<"own" | "shown" | "waiting", Look>> = {
  own: { label: "Own work", colour: "var(--series-1)" },
  shown: { label: "Communication", colour: "var(--series-2)" },
  waiting: { label: "Waiting for other ranks", colour: "var(--series-8)", hatch: "dots" },
};

export function termPieces(terms: readonly Term[], which: "predicted_s" | "measured_s"): readonly Piece[] {
  return terms.map((each) => ({
    name: each.term,
    value: each[which] ?? 0,
    look: lookOf(MEASURED_TERMS, each.term),
  }));
}

/** One part each for the legend: what shows in either bar. */
export function legendPieces(terms: readonly Term[]): readonly Piece[] {
  return terms
    .filter((each) => (each.predicted_s ?? 0) > 0 || (each.measured_s ?? 0) > 0)
    .map((each) => ({
      name: each.term,
      value: each.measured_s ?? each.predicted_s ?? 0,
      look: lookOf(MEASURED_TERMS, each.term),
    }));
}

/** Of communication that shows, what is waiting stands apart where it is known. */
export function rankPieces({ own_s, communication_s, waiting_s }: Rank): readonly Piece[] {
  const waiting = Math.min(waiting_s ?? 0, communication_s);
  return [
    { name: "own", value: own_s, look: RANK_PARTS.own },
    { name: "shown", value: communication_s - waiting, look: RANK_PARTS.shown },
    { name: "waiting", value: waiting, look: RANK_PARTS.waiting },
  ];
}

/** The terms were measured: some file was a trace. */
export const isTraced = ({ terms }: Diagnosis): boolean => terms.some((each) => each.measured_s != null);
