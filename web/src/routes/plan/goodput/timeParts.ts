/** Where the whole time of a job goes: what counts, and what trains nothing. */

import type { Goodput } from "../../../api/queries/goodput";
import type { Piece } from "../../../charts/stack";
import { GOODPUT_TERMS, lookOf } from "../../../charts/terms";

/** Parts of the time that add up to one, in the order of the chart. */
export function timeParts(view: Goodput): readonly Piece[] {
  const parts: Readonly<Record<string, number>> = { useful: view.useful, ...view.lost };
  return Object.keys(GOODPUT_TERMS).map((name) => ({
    name,
    value: parts[name] ?? 0,
    look: lookOf(GOODPUT_TERMS, name),
  }));
}
