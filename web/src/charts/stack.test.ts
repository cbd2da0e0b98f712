import { expect, test } from "vitest";
import { stackPieces } from "./stack";
import { lookOf, MEMORY_TERMS } from "./terms";

const piece = (name: string, value: number) => ({ name, value, look: lookOf(MEMORY_TERMS, name) });

test("pieces follow each other and fill the width", () => {
  const placed = stackPieces([piece("weights", 1), piece("none", 0), piece("buffers", 3)], 400);
  expect(placed.map(({ piece: { name }, x, width }) => [name, x, width])).toEqual([
    ["weights", 0, 99],
    ["buffers", 100, 299],
  ]);
});

test("a total longer than the pieces leaves room", () => {
  const [only] = stackPieces([piece("weights", 1)], 400, 4);
  expect(only?.width).toBe(99);
});

test("a term that is new has a look all the same", () => {
  expect(lookOf(MEMORY_TERMS, "kv_cache")).toMatchObject({ label: "kv cache", hatch: "cross" });
});
