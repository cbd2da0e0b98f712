import type { Piece } from "../../charts/stack";
import { lookOf, TIME_TERMS } from "../../charts/terms";

/** The parts of the step time, largest parts named. */
export function timePieces(breakdown: Readonly<Record<string, number>>): readonly Piece[] {
  const order = Object.keys(TIME_TERMS);
  const rank = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return Object.entries(breakdown)
    .filter(([, value]) => value > 0)
    .sort(([a], [b]) => rank(a) - rank(b))
    .map(([name, value]) => ({ name, value, look: lookOf(TIME_TERMS, name) }));
}
