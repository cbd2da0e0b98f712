import { describe, expect, it } from "vitest";
import { linePath, SHAPES, scaleLinear, scaleLog, ticks } from "./scales";

describe("ticks", () => {
  it.each([
    [0, 1, 5, [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [0, 0.3, 3, [0, 0.1, 0.2, 0.3]],
    [13, 87, 4, [20, 40, 60, 80]],
    [-40, 70, 5, [-40, -20, 0, 20, 40, 60]],
    [0, 12_500, 5, [0, 2000, 4000, 6000, 8000, 10_000, 12_000]],
    [3, 3, 5, [3]],
  ])("from %d to %d, about %d", (low, high, wanted, marks) => {
    expect(ticks(low, high, wanted).map((each) => each + 0)).toEqual(marks);
  });
});

describe("scales", () => {
  it("place values between the ends of the range", () => {
    expect(scaleLinear([10, 20], [0, 100])(12.5)).toBe(25);
    expect(scaleLinear([0, 1], [100, 0])(0.25)).toBe(75);
    expect(scaleLog([1, 100], [0, 10])(10)).toBeCloseTo(5);
    expect(scaleLinear([4, 4], [0, 10])(4)).toBe(5);
  });
  it("end at round values when asked", () => {
    expect(scaleLinear([0.13, 0.87], [0, 1]).nice(4).domain()).toEqual([0, 1]);
    expect(scaleLinear([231, 748], [0, 1]).nice(5).domain()).toEqual([200, 800]);
  });
});

describe("shapes", () => {
  it("cover the same area", () => {
    // The corners of all but the circle; the shoelace formula.
    for (const shape of SHAPES.slice(1)) {
      const corners = [...shape(36).matchAll(/(-?[\d.]+),(-?[\d.]+)/g)].map(
        ([, x, y]) => [Number(x), Number(y)] as const,
      );
      const next = (index: number) => corners[(index + 1) % corners.length] as readonly [number, number];
      const area =
        corners.reduce((sum, [x, y], index) => sum + x * next(index)[1] - y * next(index)[0], 0) / 2;
      expect(Math.abs(area)).toBeCloseTo(36, 1);
    }
  });
  it("and lines go from place to place", () => {
    expect(linePath([])).toBe("");
    expect(
      linePath([
        [1, 2],
        [5.12345, 4],
      ]),
    ).toBe("M1,2L5.123,4");
  });
});
