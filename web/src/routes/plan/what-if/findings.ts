/** Beside which control does a finding stand?  Where its pointer leads; else beside the fields that its sentence names. */

import type { Finding } from "../../../api/problem";
import { type FieldName, LABELS } from "./fields";

const ALL = Object.keys(LABELS) as FieldName[];
/** Words of sentences that name a field by another word than the field's own. */
const ALSO: Partial<Record<FieldName, RegExp>> = {
  micro_batch_size: /\bmbs\b/,
  schedule: /\binterleaved|\b1f1b\b/,
  devices: /\bdevices\b/,
};

export interface PlacedFindings {
  readonly at: Readonly<Partial<Record<FieldName, readonly Finding[]>>>;
  /** What no control shows. */
  readonly rest: readonly Finding[];
}

function named(finding: Finding): readonly FieldName[] {
  const [, part, field] = finding.pointer.split("/");
  const pointed = ALL.filter((name) => name === field || name === part);
  if (pointed.length > 0) return pointed;
  if (part !== "strategy" && part !== undefined && part !== "") return [];
  return ALL.filter(
    (name) => new RegExp(`\\b${name}\\b`).test(finding.detail) || ALSO[name]?.test(finding.detail),
  );
}

/** Of several fields that a finding names, those that were changed are to blame; if none was, all are. */
export function placeFindings(findings: readonly Finding[], changed: readonly FieldName[]): PlacedFindings {
  const at: Partial<Record<FieldName, Finding[]>> = {};
  const rest: Finding[] = [];
  for (const finding of findings) {
    const fields = named(finding);
    const blamed = fields.filter((name) => changed.includes(name));
    for (const name of blamed.length > 0 ? blamed : fields) at[name] = [...(at[name] ?? []), finding];
    if (fields.length === 0) rest.push(finding);
  }
  return { at, rest };
}
