/** Beside which control does a finding stand?  Where its pointers lead. */

import type { Finding } from "../../../api/problem";
import { type FieldName, LABELS } from "./fields";

const ALL = Object.keys(LABELS) as FieldName[];

export interface PlacedFindings {
  readonly at: Readonly<Partial<Record<FieldName, readonly Finding[]>>>;
  /** What no control shows. */
  readonly rest: readonly Finding[];
}

const INSIDE: ReadonlySet<string> = new Set(["strategy", "scale", "workload"]);

/** The field that `/strategy/tp`, `/scale/nic_bandwidth` or `/devices` leads to. */
function fieldOf(pointer: string): FieldName | undefined {
  const [, part, field] = pointer.split("/");
  if (part === "constraints" && field === "backends") return "backend";
  return ALL.find((name) => name === (part && INSIDE.has(part) ? field : part));
}

/** Of several fields that a rule is about, those that were changed are to blame; if none was, all are. */
export function placeFindings(findings: readonly Finding[], changed: readonly FieldName[]): PlacedFindings {
  const at: Partial<Record<FieldName, Finding[]>> = {};
  const rest: Finding[] = [];
  for (const finding of findings) {
    const fields = [finding.pointer, ...(finding.also ?? [])].flatMap((each) => fieldOf(each) ?? []);
    const blamed = fields.filter((name) => changed.includes(name));
    for (const name of blamed.length > 0 ? blamed : fields) at[name] = [...(at[name] ?? []), finding];
    if (fields.length === 0) rest.push(finding);
  }
  return { at, rest };
}
