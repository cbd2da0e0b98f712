import type { TermChange } from "../../api/queries/variants";
import { lookOf, TIME_TERMS } from "../../charts/terms";
import { seconds, secondsChange } from "../../lib/format";
import { TermChanges } from "./TermChanges";

interface Props {
  terms: readonly TermChange[];
  /** What the two sides are called. */
  a: string;
  b: string;
}

/** Seconds of a step that each part pays or saves. */
export function TimeChanges(props: Props) {
  return (
    <TermChanges
      {...props}
      title="Step time by part"
      unit={seconds}
      change={secondsChange}
      look={(name) => lookOf(TIME_TERMS, name)}
    />
  );
}
