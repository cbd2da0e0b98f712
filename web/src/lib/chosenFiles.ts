/** Which files were chosen, and what of them goes to the service?  Their names and bytes, and never more than it takes. */

import type { Finding } from "../api/problem";
import { bytes, count } from "./format";

/** What one request carries: the service takes 16 MiB of body, and base64 makes four bytes of three. */
const MOST_BYTES = 11.5 * 2 ** 20;
const MOST_FILES = 64;
/** How many arguments a function call may have, with room to spare. */
const PART_BYTES = 2 ** 15;

const isSame = (a: File, b: File) =>
  a.name === b.name && a.size === b.size && a.lastModified === b.lastModified;

/** The files with those that were added; one that is chosen again is there once. */
export function withFiles(chosen: readonly File[], added: readonly File[]): readonly File[] {
  const list = [...chosen];
  for (const file of added) if (!list.some((each) => isSame(each, file))) list.push(file);
  return list;
}

/** Why they cannot be sent together. */
export function tooLarge(files: readonly File[]): readonly Finding[] {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const hint = "send fewer at once, or run meshwright profile import on the server";
  if (files.length > MOST_FILES)
    return [{ pointer: "/files", detail: `at most ${count(MOST_FILES)} files go into one request`, hint }];
  if (size > MOST_BYTES)
    return [
      {
        pointer: "/files",
        detail: `they have ${bytes(size, 3)}; at most ${bytes(MOST_BYTES, 3)} are sent`,
        hint,
      },
    ];
  return [];
}

/** A file as a request carries it. */
export async function contentOf(file: File): Promise<{ name: string; content_base64: string }> {
  const content = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let from = 0; from < content.length; from += PART_BYTES) {
    text += String.fromCharCode(...content.subarray(from, from + PART_BYTES));
  }
  return { name: file.name, content_base64: btoa(text) };
}
