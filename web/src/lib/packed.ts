/** How is a large file sent?  Compressed: logs and traces become a tenth, and a request carries 2 MiB. */

import { contentOf } from "./chosenFiles";

const GZIP = [0x1f, 0x8b];

export interface Packed {
  readonly name: string;
  readonly base64: string;
}

/** The file under its own name, its bytes compressed unless they are; readers tell gzip by its first bytes. */
export async function packed(file: File): Promise<Packed> {
  const first = new Uint8Array(await file.slice(0, GZIP.length).arrayBuffer());
  const isPacked = GZIP.every((byte, place) => first[place] === byte);
  const { content_base64 } = await contentOf(isPacked ? file : await compressed(file));
  return { name: file.name, base64: content_base64 };
}

async function compressed(file: File): Promise<File> {
  const stream = file.stream().pipeThrough(new CompressionStream("gzip"));
  return new File([await new Response(stream).blob()], file.name);
}
