/** What is a file that somebody dropped?  A model or a cluster, by what its keys say. */

import type { Documents } from "./question";

export class FileRefused extends Error {}

const MODEL_KEYS = ["model_type", "architectures", "hidden_size", "layer_kinds", "num_layers"];
const MOST_BYTES = 2 * 2 ** 20;

/** Which of the two documents an object is. */
export function kindOf(content: Record<string, unknown>): keyof Documents | undefined {
  if ("pools" in content) return "cluster";
  return MODEL_KEYS.some((key) => key in content) ? "model" : undefined;
}

export async function readDropped(file: File): Promise<Documents> {
  if (file.size > MOST_BYTES) throw new FileRefused(`${file.name} is larger than 2 MiB`);
  const content = parsed(file.name, await file.text());
  const kind = kindOf(content);
  if (kind === undefined) {
    throw new FileRefused(
      `${file.name} is neither a model (no hidden_size, no model_type) nor a cluster (no pools)`,
    );
  }
  return { [kind]: { name: file.name, content } };
}

function parsed(name: string, text: string): Record<string, unknown> {
  try {
    const content: unknown = JSON.parse(text);
    if (typeof content === "object" && content !== null && !Array.isArray(content)) {
      return content as Record<string, unknown>;
    }
  } catch (error) {
    throw new FileRefused(`${name} is no JSON: ${(error as Error).message}`);
  }
  throw new FileRefused(`${name} holds no JSON object`);
}
