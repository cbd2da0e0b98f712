import { expect, test } from "vitest";
import {
  type BandwidthCurve,
  bandwidthPath,
  bandwidthScales,
  byteTicks,
  intervalPath,
  walked,
} from "./bandwidth";

const curve = (id: string, sizes: readonly number[]): BandwidthCurve => ({
  id,
  points: sizes.map((bytes) => ({ bytes, bandwidth_bytes_per_s: bytes * 1e3 })),
  factor: 1.25,
});
const KIB = 1024;
const CURVES = [curve("a", [KIB, 4 * KIB, 16 * KIB]), curve("b", [2 * KIB, 15 * KIB])];

const numbers = (path: string) => (path.match(/-?[\d.]+/g) ?? []).map(Number);

test("every point is on the line, bandwidth counts from zero, and all of it is inside", () => {
  const scales = bandwidthScales(CURVES, 400, 240);
  const [first] = CURVES;
  if (!first) throw new Error("no curve");
  const path = numbers(bandwidthPath(first, scales));
  expect(path).toHaveLength(6);
  expect(path[0]).toBeCloseTo(scales.x(KIB), 2);
  expect(path[1]).toBeCloseTo(scales.y(KIB * 1e3), 2);
  expect(scales.y(0)).toBe(240 - 42);
  for (const [place, value] of path.entries()) {
    expect(value).toBeGreaterThan(0);
    expect(value).toBeLessThan(place % 2 ? 240 : 400);
  }
});

test("the interval is a factor each way, and never above the picture", () => {
  const scales = bandwidthScales(CURVES, 400, 240);
  const heights = numbers(intervalPath(CURVES[0] as BandwidthCurve, scales)).filter((_, place) => place % 2);
  expect(heights).toHaveLength(6);
  // There along the upper edge, back along the lower one; the last point's upper end is beyond the domain.
  expect(heights[0]).toBeCloseTo(scales.y(KIB * 1e3 * 1.25), 2);
  expect(heights[2]).toBeCloseTo(14, 2);
  expect(heights[5]).toBeCloseTo(scales.y((KIB * 1e3) / 1.25), 2);
});

test("no curve and a curve of one point have finite scales", () => {
  for (const curves of [[], [curve("a", [0])]]) {
    const { x, y } = bandwidthScales(curves, 400, 240);
    expect(Number.isFinite(x(1))).toBe(true);
    expect(Number.isFinite(y(1)) || curves.length > 0).toBe(true);
  }
});

test("ticks are round powers of two, fewer where there is less room", () => {
  expect(byteTicks([KIB, 2 ** 30], 12)).toEqual(
    [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30].map((n) => 2 ** n),
  );
  expect(byteTicks([KIB, 2 ** 30], 5)).toEqual([10, 15, 20, 25, 30].map((n) => 2 ** n));
  expect(byteTicks([1, 2], 5)).toEqual([1]);
});

test("keys walk along a curve, and to the nearest size of the next one", () => {
  expect(walked(CURVES, undefined, "ArrowRight")).toEqual({ curve: 0, point: 0 });
  expect(walked(CURVES, undefined, "Tab")).toBeUndefined();
  expect(walked(CURVES, { curve: 0, point: 2 }, "ArrowRight")).toEqual({ curve: 0, point: 2 });
  expect(walked(CURVES, { curve: 0, point: 2 }, "ArrowDown")).toEqual({ curve: 1, point: 1 });
  expect(walked(CURVES, { curve: 0, point: 0 }, "ArrowUp")).toEqual({ curve: 1, point: 0 });
  expect(walked(CURVES, { curve: 1, point: 0 }, "End")).toEqual({ curve: 1, point: 1 });
  expect(walked(CURVES, { curve: 1, point: 1 }, "Home")).toEqual({ curve: 1, point: 0 });
  expect(walked(CURVES, { curve: 1, point: 1 }, "j")).toBeUndefined();
});
