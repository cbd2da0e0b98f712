/** Which figures of a cluster are changed most, and where do they stand in its document? */

import { bandwidth, bytes } from "../../lib/format";

export type Path = readonly (string | number)[];
type Json = unknown;

export interface Figure {
  readonly path: Path;
  readonly label: string;
  /** As it is written; what somebody typed is kept as text, units included: the API reads them. */
  readonly text: string;
}

type Write = (value: number) => string;
const plain: Write = String;

export function valueAt(document: Json, path: Path): Json {
  return path.reduce<Json>((at, key) => (at as Record<string | number, Json> | undefined)?.[key], document);
}

/** The document with another value at a path; nothing else changes, and the old one stays as it was. */
export function withValue<T>(document: T, path: Path, value: Json): T {
  const [key, ...rest] = path;
  if (key === undefined) return value as T;
  if (Array.isArray(document)) {
    return document.map((each, index) => (index === key ? withValue(each, rest, value) : each)) as T;
  }
  const object = (document ?? {}) as Record<string | number, Json>;
  return { ...object, [key]: withValue(object[key], rest, value) } as T;
}

/** RFC 6901, below the cluster of a question. */
export function pointerOf(path: Path): string {
  return ["/cluster", ...path.map((key) => String(key).replaceAll("~", "~0").replaceAll("/", "~1"))].join(
    "/",
  );
}

function figure(document: Json, path: Path, label: string, write: Write): Figure {
  const value = valueAt(document, path);
  const text =
    typeof value === "number"
      ? write(value).replaceAll("\u00a0", " ")
      : typeof value === "string"
        ? value
        : "";
  return { path, label, text };
}

const POOL: readonly (readonly [Path, string, Write])[] = [
  [["num_nodes"], "Nodes", plain],
  [["devices_per_node"], "Devices a node", plain],
  [["device", "memory_bytes"], "Memory a device", bytes],
  [["scale_up", "domain_size"], "Scale-up domain, devices", plain],
  [["scale_up", "bandwidth_bytes_per_s"], "Scale-up bandwidth, one way", bandwidth],
  [["nics_per_node"], "NICs a node", plain],
  [["nic_bandwidth_bytes_per_s"], "NIC bandwidth, one way", bandwidth],
];

/** The figures of every pool and of every level of the network. */
export function figuresOf(document: Json): readonly Figure[] {
  const pools = asList(valueAt(document, ["pools"]));
  const fabric = asList(valueAt(document, ["fabric"]));
  const ofPool = pools.flatMap((pool, index) => {
    const prefix = pools.length > 1 ? `${String(valueAt(pool, ["name"]) ?? index)}: ` : "";
    return POOL.map(([path, label, write]) =>
      figure(document, ["pools", index, ...path], prefix + label, write),
    );
  });
  const ofLevel = fabric.map((level, index) => {
    const name = String(valueAt(level, ["name"]) ?? index);
    return figure(document, ["fabric", index, "oversubscription"], `Oversubscription, ${name}`, plain);
  });
  return [...ofPool, ...ofLevel];
}

function asList(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** Digits are a number, nothing is nothing, and all else stays text for the API to read. */
export function typedValue(text: string): number | string | null {
  if (text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}
