/** What are the layers of a model made of, kind by kind? */

import { count, plural } from "../../lib/format";

type Fields = Readonly<Record<string, unknown>>;

/** The parts of a stored model that this page reads. */
export interface ModelDocument {
  readonly vocab_size: number;
  readonly tie_embeddings: boolean;
  readonly layer_kinds: readonly Readonly<Record<string, Fields | null | unknown>>[];
  readonly layer_runs: readonly { readonly kind: number; readonly count: number }[];
}

export interface LayerRow {
  readonly kind: number;
  readonly count: number;
  readonly mixer: string;
  readonly channels: string;
}

/** Kinds in the order in which they first come, each with the number of its layers. */
export function layerRows(model: ModelDocument): readonly LayerRow[] {
  const counts = new Map<number, number>();
  for (const run of model.layer_runs) counts.set(run.kind, (counts.get(run.kind) ?? 0) + run.count);
  return [...counts].map(([kind, layers]) => {
    const parts = model.layer_kinds[kind] ?? {};
    const mixers = [mixerWords(fieldsOf(parts.attention)), parts.cross ? "cross-attention" : ""];
    const channels = [expertWords(fieldsOf(parts.moe)), mlpWords(fieldsOf(parts.mlp))];
    return { kind, count: layers, mixer: joined(mixers), channels: joined(channels) };
  });
}

const MIXERS: Readonly<Record<string, string>> = {
  gqa: "attention",
  mla: "latent attention",
  mamba2: "Mamba-2",
  gated_delta: "gated DeltaNet",
  kimi_delta: "Kimi delta attention",
  short_conv: "short convolution",
};

function mixerWords(part: Fields | null): string {
  const kind = String(part?.kind ?? "none");
  if (!part || kind === "none") return "";
  const words = [MIXERS[kind] ?? kind];
  const add = (value: unknown, say: (size: number) => string) => {
    if (typeof value === "number") words.push(say(value));
  };
  add(part.num_heads ?? part.num_value_heads, (heads) => {
    return `${plural(heads, "head")} of ${part.head_dim ?? part.value_head_dim}`;
  });
  if (part.num_kv_heads !== part.num_heads)
    add(part.num_kv_heads, (heads) => `${count(heads)} for keys and values`);
  add(part.kv_lora_rank, (rank) => `latent of ${count(rank)}`);
  add(part.state_size, (size) => `state of ${count(size)}`);
  add(part.sliding_window, (tokens) => `window of ${count(tokens)}`);
  return words.join(", ");
}

function mlpWords(part: Fields | null): string {
  if (!part) return "";
  return `${part.gated ? "gated MLP" : "MLP"} of ${count(part.intermediate_size as number)}`;
}

function expertWords(part: Fields | null): string {
  if (!part) return "";
  const shared = part.shared_intermediate_size as number;
  const words = `${plural(part.num_experts as number, "expert")} of ${count(part.expert_intermediate_size as number)}`;
  return `${words}, ${count(part.top_k as number)} a token${shared > 0 ? `, shared ${count(shared)}` : ""}`;
}

function fieldsOf(part: unknown): Fields | null {
  return typeof part === "object" && part !== null ? (part as Fields) : null;
}

function joined(words: readonly string[]): string {
  return words.filter(Boolean).join("; ") || "nothing";
}
