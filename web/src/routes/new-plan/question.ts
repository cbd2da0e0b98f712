/** Which request does a draft mean?  Text becomes numbers where it is one; what is none goes as it is, and is refused. */

import type { Schemas } from "../../api/client";
import type { ScriptAnswer } from "../../api/queries/scripts";
import { namesIn } from "../../lib/backends";
import type { SaidBeside } from "../../lib/launchScript";
import { trainingOf } from "../../lib/training";
import { typedNumber } from "../../lib/typed";
import { workloadOf } from "../../lib/workload";
import type { Draft } from "../new-plan.search";

export type PlanQuestion = Schemas["PlanQuestion"];
/** Documents that were dropped or written: too long for an address. */
export interface Documents {
  readonly model?: DroppedDocument;
  readonly cluster?: DroppedDocument;
  /** The launch script that `model` is of, while it has its name. */
  readonly script?: DroppedScript;
}
/** A launch script, and what is said beside it. */
export interface DroppedText {
  readonly name: string;
  readonly text: string;
  readonly beside: SaidBeside;
}
export interface DroppedScript extends DroppedText {
  readonly facts: Omit<ScriptAnswer, "model">;
}
export interface DroppedDocument {
  readonly name: string;
  readonly content: Record<string, unknown>;
  /** Where each value comes from, of a cluster that topology files completed. */
  readonly notes?: readonly string[];
}

/** "tp=8, recompute=full" -> {tp: 8, recompute: "full"}. */
export function typedPins(text: string): Record<string, number | string | boolean> {
  const pairs = text.split(/[\s,;]+/).filter(Boolean);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [name = "", value = ""] = pair.replace(/^--/, "").split("=");
      const plain = value === "true" ? true : value === "false" ? false : (typedNumber(value) ?? "");
      return [name, plain];
    }),
  );
}

export function typedNames(text: string): string[] {
  return text.split(/[\s,;]+/).filter(Boolean);
}

/** The body of POST /v1/plans and of POST /v1/problems:check. */
export function questionOf(draft: Draft, documents: Documents): PlanQuestion {
  const model = draft.modelFile ? (documents.model?.content ?? draft.modelFile) : draft.model;
  const cluster = draft.clusterFile ? (documents.cluster?.content ?? draft.clusterFile) : draft.cluster;
  const script = documents.script?.name === draft.modelFile ? documents.script : undefined;
  const question = {
    model,
    cluster,
    devices: typedNumber(draft.devices),
    workload: {
      ...script?.facts.workload,
      ...said(workloadOf(draft)),
      global_batch_size: typedNumber(draft.batch),
      sequence_length: typedNumber(draft.seq),
      precision: draft.precision,
      optimizer: draft.optimizer,
      training: trainingOf(draft),
    },
    constraints: {
      backends: namesIn(draft.backend),
      pins: typedPins(draft.pins),
      forbids: typedNames(draft.forbid),
      max_step_time_s: typedNumber(draft.maxStep),
      min_tokens_per_s: typedNumber(draft.minRate),
      memory_margin_fraction: percentOf(draft.margin),
      fits: percentOf(draft.fits),
    },
    objective: { minimize: draft.objective, price_per_device_hour: typedNumber(draft.price) },
    prefer: draft.prefer,
    profile: draft.profile,
    calibration: draft.calibration.trim() || undefined,
    time_limit_s: typedNumber(draft.limit),
  };
  // The server fills in what is absent; the types of the document name defaults as present.
  return question as unknown as PlanQuestion;
}

/** Only what is said: what is left empty does not hide what a script says. */
function said(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Percent as typed -> the fraction that the API takes. */
function percentOf(text: string): number | undefined {
  const value = typedNumber(text);
  return typeof value === "number" ? value / 100 : value;
}

/** What may be asked about a problem without searching: everything but what and how long to search. */
export function checkable(question: PlanQuestion): Schemas["Question"] {
  const { time_limit_s: _limit, prefer: _prefer, ...rest } = question;
  return rest as Schemas["Question"];
}
