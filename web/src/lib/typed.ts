/** What does typed text mean? */

/** "64" -> 64, "" -> undefined, "6k" -> "6k". */
export function typedNumber(text: string): number | undefined {
  const trimmed = text.trim().replaceAll(/[,_](?=\d{3})/g, "");
  if (trimmed === "") return undefined;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : (trimmed as unknown as number);
}
