/** Fields of a workload that are typed as text: routing of experts, lengths of documents, and what has no field. */

import type { Schemas } from "../api/client";
import { typedNumber } from "./typed";

type Workload = Schemas["Workload"];
export interface TypedWorkload {
  readonly routing: string;
  readonly sequences: string;
  readonly workloadMore: string;
}

/** What the form shows only as `name=value`, with the value that stands for nothing said. */
const MORE = {
  gradient_dtype: "fp32",
  images_per_sample: 0,
  audio_clips_per_sample: 0,
  image_counts: null,
  audio_clip_counts: null,
  source_length: null,
  sample: null,
  fp8_recipe: null,
  dropout: false,
} as const;
const STATES = "optimizer_states";

/** The document fields of these three texts; text that is none goes as it is, and is refused where it stands. */
export function workloadOf({ routing, sequences, workloadMore }: TypedWorkload): Record<string, unknown> {
  const more = workloadMore
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map((pair) => named(pair));
  const inside = `${STATES}.`;
  const states = more.filter(([name]) => name.startsWith(inside));
  return {
    ...Object.fromEntries(more.filter(([name]) => !name.startsWith(inside))),
    ...(states.length > 0 && {
      [STATES]: Object.fromEntries(states.map(([name, value]) => [name.slice(inside.length), value])),
    }),
    routing: routingOf(routing.trim()),
    sequences: sequencesOf(sequences.trim()),
  };
}

/** The three texts of a document. */
export function typedWorkload(said: Partial<Workload>): TypedWorkload {
  const names = (Object.keys(MORE) as (keyof typeof MORE)[]).filter(
    (name) => said[name] !== undefined && said[name] !== MORE[name],
  );
  const states = Object.entries(said[STATES] ?? {}).map(([name, value]) => `${STATES}.${name}=${value}`);
  return {
    routing: routingText(said.routing),
    sequences: sequencesText(said.sequences),
    workloadMore: [...names.map((name) => `${name}=${shown(said[name])}`), ...states].join(" "),
  };
}

/** Sides of a sample as `81x480x832`, a distribution as `p50:1+p99:8`: the service reads both. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return value.join("x");
  return typeof value === "object" && value !== null ? countsText(value) : String(value);
}

function countsText(said: NonNullable<Workload["image_counts"]>): string {
  if (said.mean != null) return `mean:${said.mean}`;
  if (said.histogram) return said.histogram.map(([items, samples]) => `${items}:${samples}`).join("+");
  return (said.percentiles ?? []).map(([at, items]) => `p${at}:${items}`).join("+");
}

function named(pair: string): [string, unknown] {
  const [name = "", value = "true"] = pair.split("=");
  return [name, value === "true" ? true : value === "false" ? false : typedNumber(value)];
}

/** `even`, `zipf:0.3`, or the document as JSON. */
function routingOf(text: string): unknown {
  if (!text) return undefined;
  if (text.startsWith("zipf:")) return { kind: "zipf", exponent: typedNumber(text.slice(5)) };
  return parsed(text) ?? { kind: text };
}

function routingText(said: Workload["routing"]): string {
  if (!said) return "";
  if (said.kind === "even") return "even";
  return said.kind === "zipf" ? `zipf:${said.exponent}` : JSON.stringify(said);
}

/** `packed,mean=640,p99=4000,packing=greedy`, or the document as JSON. */
function sequencesOf(text: string): unknown {
  if (!text) return undefined;
  const document = parsed(text);
  if (document !== undefined) return document;
  const [kind, ...options] = text.split(/[\s,;]+/).filter(Boolean);
  const said = options.map((option) => named(option));
  const percentiles = said.filter(([name]) => /^p[\d.]+$/.test(name));
  const others = said.filter(([name]) => !/^p[\d.]+$/.test(name));
  return {
    kind,
    ...Object.fromEntries(others),
    ...(percentiles.length > 0 && {
      percentiles: percentiles.map(([name, at]) => [Number(name.slice(1)), at]),
    }),
  };
}

function sequencesText(said: Workload["sequences"]): string {
  if (!said) return "";
  if (said.histogram) return JSON.stringify(said);
  const parts = [
    said.mean == null ? "" : `mean=${said.mean}`,
    ...(said.percentiles ?? []).map(([at, tokens]) => `p${at}=${tokens}`),
    said.packing == null ? "" : `packing=${said.packing}`,
  ];
  return [said.kind, ...parts.filter(Boolean)].join(",");
}

/** The object that the text writes in JSON; nothing where it writes none. */
function parsed(text: string): unknown {
  if (!text.startsWith("{")) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
