import { expect, test } from "vitest";
import { byteTicks, rangeScale } from "./ranges";

test("each doubling is as long as the other", () => {
  const scale = rangeScale([{ id: "a", smallest_bytes: 4, largest_bytes: 64 }], 0, 400);
  expect([4, 8, 16, 64].map((size) => Math.round(scale(size)))).toEqual([0, 100, 200, 400]);
});

test("a single size has a scale", () => {
  const scale = rangeScale([{ id: "a", smallest_bytes: 8, largest_bytes: 8 }], 0, 100);
  expect(scale(8)).toBe(0);
});

test("ticks thin out", () => {
  expect(byteTicks([1, 2 ** 30], 6)).toEqual([1, 32, 1024, 2 ** 15, 2 ** 20, 2 ** 25, 2 ** 30]);
  expect(byteTicks([1, 2 ** 30], 3)).toEqual([1, 2 ** 10, 2 ** 20, 2 ** 30]);
});
