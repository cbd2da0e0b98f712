/**
 * What is a file that somebody dropped?  A model or a cluster, by what its keys say; a launch script, by its arguments;
 * anything else may be a topology.
 */

import { isLaunchScript, NOTHING_SAID } from "../../lib/launchScript";
import type { Documents, DroppedText } from "./question";

export class FileRefused extends Error {}

const MODEL_KEYS = ["model_type", "architectures", "hidden_size", "layer_kinds", "num_layers"];
/** No document of ours is larger. */
const MOST_BYTES = 2 * 2 ** 20;
const HEAD_BYTES = 4096;

/** Which of the two documents an object is. */
export function kindOf(content: Record<string, unknown>): "model" | "cluster" | undefined {
  if ("pools" in content) return "cluster";
  return MODEL_KEYS.some((key) => key in content) ? "model" : undefined;
}

/** The document that a text is; undefined = none of ours.  Throws FileRefused for a .json that is no JSON. */
export function documentOf(name: string, text: string): Documents | undefined {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    // Who says JSON means a document, with a mistake in it; tools write anything under other names.
    if (/\.json$/i.test(name)) throw new FileRefused(`${name} is no JSON: ${(error as Error).message}`);
    return undefined;
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) return undefined;
  const kind = kindOf(content as Record<string, unknown>);
  return kind && { [kind]: { name, content: content as Record<string, unknown> } };
}

/** Pictures and programs have zeros where texts have letters; compressed texts are the service's to read. */
async function refuseBinary(file: File): Promise<void> {
  const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
  const isGzip = head[0] === 0x1f && head[1] === 0x8b;
  if (head.includes(0) && !isGzip)
    throw new FileRefused(
      `${file.name} is no text: neither a model, a launch script, a cluster nor what a tool says of one`,
    );
}

export interface Read {
  readonly documents: Documents;
  readonly scripts: readonly DroppedText[];
  /** Files that are no documents: what tools say about a machine. */
  readonly others: readonly File[];
  readonly faults: readonly string[];
}

/** What several files are, that were dropped or opened together. */
export async function readDropped(files: readonly File[]): Promise<Read> {
  let documents: Documents = {};
  const scripts: DroppedText[] = [];
  const others: File[] = [];
  const faults: string[] = [];
  for (const file of files) {
    try {
      await refuseBinary(file);
      const text = file.size > MOST_BYTES ? undefined : await file.text();
      const found = text === undefined ? undefined : documentOf(file.name, text);
      if (found) documents = { ...documents, ...found };
      else if (text !== undefined && isLaunchScript(text, file.name))
        scripts.push({ name: file.name, text, beside: NOTHING_SAID });
      else others.push(file);
    } catch (error) {
      faults.push(error instanceof FileRefused ? error.message : `${file.name} cannot be read`);
    }
  }
  return { documents, scripts, others, faults };
}
