/** Beside which field does a finding stand?  By its JSON pointer; what no field shows is left for the form's end. */

import { type Finding, findingsAt } from "../../api/problem";

export const POINTERS = {
  model: ["/model", "--model"],
  cluster: ["/cluster"],
  devices: ["/devices"],
  batch: ["/workload/global_batch_size"],
  seq: ["/workload/sequence_length"],
  precision: ["/workload/precision"],
  optimizer: ["/workload/optimizer"],
  training: ["/workload/training/kind"],
  task: ["/workload/training/task"],
  trainingOptions: ["/workload/training"],
  routing: ["/workload/routing"],
  sequences: ["/workload/sequences"],
  workloadMore: [
    "/workload/gradient_dtype",
    "/workload/images_per_sample",
    "/workload/audio_clips_per_sample",
    "/workload/image_counts",
    "/workload/audio_clip_counts",
    "/workload/source_length",
    "/workload/sample",
    "/workload/fp8_recipe",
    "/workload/optimizer_states",
    "/workload/dropout",
  ],
  objective: ["/objective/minimize"],
  price: ["/objective/price_per_device_hour"],
  prefer: ["/prefer"],
  backend: ["/constraints/backends"],
  pins: ["/constraints/pins"],
  forbid: ["/constraints/forbids"],
  profile: ["/profile"],
  calibration: ["/calibration"],
  margin: ["/constraints/memory_margin_fraction"],
  fits: ["/constraints/fits"],
  maxStep: ["/constraints/max_step_time_s"],
  minRate: ["/constraints/min_tokens_per_s"],
  limit: ["/time_limit_s"],
} as const;

export type FieldName = keyof typeof POINTERS;
export type PlacedFindings = Record<FieldName, readonly Finding[]> & {
  /** Every finding that stands beside a field. */
  readonly placed: readonly Finding[];
  readonly rest: readonly Finding[];
};

export function placed(findings: readonly Finding[]): PlacedFindings {
  const distinct = findings.filter(
    (each, index) =>
      findings.findIndex((other) => other.pointer === each.pointer && other.detail === each.detail) === index,
  );
  const names = Object.keys(POINTERS) as FieldName[];
  const byField = Object.fromEntries(
    names.map((name) => [name, findingsAt(distinct, ...POINTERS[name])]),
  ) as Record<FieldName, readonly Finding[]>;
  const shown = findingsAt(findings, ...Object.values(POINTERS).flat());
  return { ...byField, placed: shown, rest: distinct.filter((each) => !shown.includes(each)) };
}
