import { expect, test } from "vitest";
import { lengthOf, panned, pixelOf, pulled, showing, timeAt, within, zoomed } from "./window";

const END = 1_000_000_000;
const HALF = { from_ns: 250_000_000, to_ns: 750_000_000 };

test("zooming keeps the moment under the pointer", () => {
  const about = 300_000_000;
  const closer = zoomed(HALF, 0.5, about, END);
  expect(lengthOf(closer)).toBe(250_000_000);
  expect(pixelOf(about, closer, 800)).toBeCloseTo(pixelOf(about, HALF, 800), 3);
});

test("nothing is seen before the beginning or after the end", () => {
  expect(zoomed(HALF, 100, 500_000_000, END)).toEqual({ from_ns: 0, to_ns: END });
  expect(panned(HALF, -3, END)).toEqual({ from_ns: 0, to_ns: 500_000_000 });
  expect(panned(HALF, 3, END)).toEqual({ from_ns: 500_000_000, to_ns: END });
  expect(within({ from_ns: -5, to_ns: -4 }, END).from_ns).toBe(0);
});

test("a window has a length, however close one comes", () => {
  let window = HALF;
  for (let turn = 0; turn < 200; turn++) window = zoomed(window, 0.5, 400_000_000, END);
  expect(lengthOf(window)).toBe(1_000);
});

test("an edge never passes the other", () => {
  expect(pulled(HALF, "start", 2 * END, END)).toEqual({ from_ns: 749_999_000, to_ns: 750_000_000 });
  expect(pulled(HALF, "end", -2 * END, END)).toEqual({ from_ns: 250_000_000, to_ns: 250_001_000 });
  expect(pulled(HALF, "end", 2 * END, END).to_ns).toBe(END);
});

test("what is shown is seen, and what is seen does not move", () => {
  expect(showing(HALF, 400_000_000, 410_000_000, END)).toBe(HALF);
  for (const [from, to] of [
    [0, 1000],
    [900_000_000, 910_000_000],
    [100_000_000, 990_000_000],
  ] as const) {
    const moved = showing(HALF, from, to, END);
    expect(moved.from_ns).toBeLessThanOrEqual(from);
    expect(moved.to_ns).toBeGreaterThanOrEqual(to);
  }
});

test("a pixel and its moment are one", () => {
  expect(pixelOf(timeAt(123, HALF, 800), HALF, 800)).toBeCloseTo(123, 9);
});
