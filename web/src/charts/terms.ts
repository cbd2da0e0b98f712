/** How does each part of a step and of memory look, everywhere?  One colour, one hatch, one name. */

import type { MemoryTerm, TimeTerm } from "../vocabulary";

export interface Look {
  readonly label: string;
  /** CSS colour, of tokens.css. */
  readonly colour: string;
  /** Name of a pattern of Hatches; undefined = plain. */
  readonly hatch?: HatchName;
}

export const HATCHES = ["rising", "falling", "dots", "cross", "level"] as const;
export type HatchName = (typeof HATCHES)[number];

const look = (label: string, series: number, hatch?: HatchName): Look => ({
  label,
  colour: `var(--series-${series})`,
  hatch,
});

/** Parts of the step time, in the order in which they are stacked. */
export const TIME_TERMS: Readonly<Record<TimeTerm, Look>> = {
  compute: look("Compute", 1),
  recompute: look("Recompute", 6, "rising"),
  tp: look("Tensor parallel", 2),
  cp: look("Context parallel", 4),
  ep: look("Expert parallel", 7, "dots"),
  dp: look("Data parallel", 3),
  pp_send: look("Pipeline transfers", 5, "level"),
  pp_bubble: look("Pipeline bubbles", 8, "falling"),
  optimizer: look("Optimizer", 5),
  offload: look("Offload", 4, "cross"),
  host: look("Waiting for the host", 8, "dots"),
};

/** What a pipeline rank does, by the API's words for kinds, in the order in which they are stacked. */
export const ACTION_KINDS: Readonly<Record<string, Look>> = {
  forward: look("Forward", 1),
  backward: look("Backward", 2, "rising"),
  "input gradient": look("Input gradient", 3, "rising"),
  "weight gradient": look("Weight gradient", 7, "dots"),
};

/** What follows the pipeline in a step: optimizer, data parallelism that is not hidden, and the rest. */
export const AFTER_PIPELINE: Look = look("After the pipeline", 4, "cross");

/** Parts of the whole time of a job that fails and is repaired, by the API's words, in the order of the chart. */
export const GOODPUT_TERMS: Readonly<Record<string, Look>> = {
  useful: look("Steps that count", 1),
  checkpoints: look("Checkpoints", 5, "level"),
  done_again: look("Steps done again", 2, "rising"),
  restarts: look("Restarts", 4, "cross"),
  waiting: look("Waiting for a repair", 8, "dots"),
};

/** Parts of a device's memory, in the order in which they are stacked. */
export const MEMORY_TERMS: Readonly<Record<MemoryTerm, Look>> = {
  weights: look("Weights", 1),
  gradients: look("Gradients", 2),
  optimizer: look("Optimizer", 5),
  activations: look("Activations", 3, "rising"),
  buffers: look("Buffers", 8, "dots"),
};

/** Memory that a plan leaves alone, for fragmentation and surprises. */
export const MEMORY_MARGIN: Look = { label: "Margin", colour: "var(--line-strong)", hatch: "falling" };

/** The look of a part that this file does not know yet. */
export function lookOf(terms: Readonly<Record<string, Look>>, name: string): Look {
  return terms[name] ?? look(name.replaceAll("_", " "), 8, "cross");
}
