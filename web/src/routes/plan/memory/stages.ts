/** What does a stage hold, in the order in which it is drawn, and what does it say in words? */

import type { Schemas } from "../../../api/client";
import type { Piece } from "../../../charts/stack";
import { lookOf, MEMORY_TERMS } from "../../../charts/terms";
import { chance, gibibytes, percent, plural } from "../../../lib/format";

export type MemoryView = Schemas["MemoryView"];
export type MemoryStage = Schemas["MemoryStage"];
export type StageOrder = "stage" | "fullest";

export function totalOf(stage: MemoryStage): number {
  return stage.peak_memory_bytes.total ?? 0;
}

/** The parts that add up to the total; those that this page does not know yet come last. */
export function memoryPieces(stage: MemoryStage): readonly Piece[] {
  const known = Object.keys(MEMORY_TERMS);
  const place = (name: string) => (known.includes(name) ? known.indexOf(name) : known.length);
  return Object.entries(stage.peak_memory_bytes)
    .filter(([name]) => name !== "total")
    .sort(([a], [b]) => place(a) - place(b))
    .map(([name, value]) => ({ name, value, look: lookOf(MEMORY_TERMS, name) }));
}

export function orderedStages(view: MemoryView, order: StageOrder): readonly MemoryStage[] {
  return order === "stage"
    ? view.stages
    : [...view.stages].sort((a, b) => totalOf(b) - totalOf(a) || a.stage - b.stage);
}

/** What the chart shows. */
export function memorySentence(view: MemoryView): string {
  const worst = view.stages.find((each) => each.stage === view.worst_stage);
  if (!worst) return "";
  const margin = view.device_memory_bytes - view.limit_bytes;
  const kept = `${gibibytes(margin)} of a device's ${gibibytes(view.device_memory_bytes)} are kept free.`;
  const sure =
    view.fits_probability == null ? "" : ` It fits with a chance of ${chance(view.fits_probability)}.`;
  const used = `${gibibytes(totalOf(worst))} of the ${gibibytes(view.limit_bytes)} that may be used (${percent(totalOf(worst) / view.limit_bytes)})`;
  if (view.stages.length === 1) return `Every device holds up to ${used}; ${kept}${sure}`;
  const least = Math.min(...view.stages.map(totalOf));
  return `Stage ${worst.stage} is the fullest of ${plural(view.stages.length, "stage")}: ${used}; the emptiest holds ${gibibytes(least)}. ${kept}${sure}`;
}

/** "42 MiB are free", or what is missing. */
export function spareWords(spare_bytes: number): string {
  return spare_bytes < 0 ? `${gibibytes(-spare_bytes)} too much` : `${gibibytes(spare_bytes)} free`;
}

/** Which activations are computed twice instead of kept. */
export function recomputeWords(recompute: Readonly<Record<string, unknown>>): string {
  const { policy, modules, num_layers_per_chunk: layers } = recompute;
  if (policy === "none" || policy === undefined) return "Nothing is recomputed; all activations are kept.";
  const names = Array.isArray(modules) && modules.length > 0 ? modules.join(", ") : "whole layers";
  const counts = Array.isArray(layers) ? layers.map(Number) : [];
  const what = `${String(policy).replace(/^./, (first) => first.toUpperCase())} recompute of ${names}`;
  return counts.length > 0 ? `${what}, ${layerWords(counts)}.` : `${what}.`;
}

function layerWords(counts: readonly number[]): string {
  const sum = counts.reduce((total, each) => total + each, 0);
  if (counts.length === 1) return `in the first ${plural(sum, "layer")}`;
  const same = counts.every((each) => each === counts[0]);
  return same
    ? `in the first ${plural(counts[0] ?? 0, "layer")} of each of ${plural(counts.length, "chunk")}`
    : `in ${plural(sum, "layer")}: the first ${counts.join(", ")} of the chunks, one after the other`;
}

/** What lives in the memory of the host. */
export function offloadWords(offload: Readonly<Record<string, unknown>>): string {
  const layers = Number(offload.activation_layers ?? 0);
  const parts = [
    offload.optimizer ? "the optimizer's states" : undefined,
    layers > 0 ? `the activations of ${plural(layers, "layer")}` : undefined,
  ].filter((each) => each !== undefined);
  if (parts.length === 0) return "Nothing is offloaded to the host.";
  return `${parts.join(" and ").replace(/^./, (first) => first.toUpperCase())} are offloaded to the host.`;
}
