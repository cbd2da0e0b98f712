/**
 * How is a search written into an address, and read from it?  `?devices=64&pinned=["a","b"]`.
 *
 * Everything that is read is text, or a list of texts where a name stands twice: only the screen knows whether 10 is a
 * number, a name or what somebody typed (`searchReader`).  The router's own parser guesses, and what it takes for JSON
 * is lost to a field of text.
 */

export function parseAddress(text: string): Record<string, string | string[]> {
  const found = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(text)) found.set(name, [...(found.get(name) ?? []), value]);
  const single = (values: string[]) => (values.length === 1 ? (values[0] ?? "") : values);
  return Object.fromEntries([...found].map(([name, values]) => [name, single(values)]));
}

/** What is undefined is left out; lists are JSON. */
export function writeAddress(search: Readonly<Record<string, unknown>>): string {
  const written = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value === undefined || value === null) continue;
    written.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  const text = written.toString();
  return text && `?${text}`;
}
