/** How much JavaScript does the first page load?  Measured on the bundle that was built, packed as it is sent. */

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";

const STATIC = new URL("../../../api/static/", import.meta.url);
const MOST_BYTES = 150_000;
const MOST_PART_BYTES = 25_000;

interface Chunk {
  file: string;
  imports?: string[];
  isEntry?: boolean;
}

const manifest = JSON.parse(readFileSync(new URL("manifest.json", STATIC), "utf8")) as Record<string, Chunk>;
const packed = (file: string) => gzipSync(readFileSync(new URL(file, STATIC)), { level: 9 }).byteLength;

/** A chunk with everything that it cannot start without. */
function closure(key: string, found = new Set<string>()): Set<string> {
  if (found.has(key)) return found;
  found.add(key);
  for (const each of manifest[key]?.imports ?? []) closure(each, found);
  return found;
}

const bytes = (keys: Iterable<string>) =>
  [...keys].reduce((sum, key) => sum + packed(manifest[key]?.file ?? ""), 0);
// What the router opens is a screen; other chunks are parts of one that come after its first view.
const router = readFileSync(new URL("../../src/router.tsx", import.meta.url), "utf8");
const screens = [...router.matchAll(/import\("\.\/(routes\/[^"]+)"\)/g)].map((each) => `src/${each[1]}.tsx`);
const parts = Object.keys(manifest).filter((key) => key.startsWith("src/routes/") && !screens.includes(key));

test("the bundle has the screens as chunks of their own", () => {
  expect(screens).toContain("src/routes/new-plan.tsx");
  expect(screens).toContain("src/routes/plan/timeline.tsx");
  expect(Object.keys(manifest)).toEqual(expect.arrayContaining(screens));
});

test.each(parts)("%s comes after the first view, and is small", (part) => {
  const screen = `${part.slice(0, part.lastIndexOf("/"))}.tsx`;
  const there = closure(screen, closure("index.html"));
  expect(bytes(closure(part, new Set(there))) - bytes(there)).toBeLessThanOrEqual(MOST_PART_BYTES);
});

test.each(screens)("opening %s first stays within the budget", (screen) => {
  const keys = closure("index.html");
  closure(screen, keys);
  // A tab of a plan comes with the screen around it.
  if (screen.startsWith("src/routes/plan/")) closure("src/routes/plan.tsx", keys);
  expect(bytes(keys)).toBeLessThanOrEqual(MOST_BYTES);
});

afterAll(() => {
  const shell = closure("index.html");
  const first = closure("src/routes/new-plan.tsx", closure("index.html"));
  process.stdout.write(
    `bundle, gzip: shell ${bytes(shell)} bytes, with the first screen ${bytes(first)} bytes\n`,
  );
});
