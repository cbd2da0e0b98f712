import { expect, test } from "vitest";
import { logTicks } from "./logTicks";

test("ticks thin out", () => {
  expect(logTicks([8, 120], 5)).toEqual([10, 20, 50, 100]);
  expect(logTicks([0.5, 300], 4)).toEqual([1, 10, 100]);
  expect(logTicks([0.5, 300], 6)).toEqual([1, 3, 10, 30, 100, 300]);
  expect(logTicks([1, 1e6], 5)).toEqual([1, 10, 100, 1000, 10000, 100000, 1000000]);
});

test("ticks are round in the unit of the reader", () => {
  expect(logTicks([9 * 2 ** 30, 99 * 2 ** 30], 4, 2 ** 30)).toEqual([10, 20, 50].map((gib) => gib * 2 ** 30));
});
