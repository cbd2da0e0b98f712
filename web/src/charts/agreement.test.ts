import { describe, expect, it } from "vitest";
import { agreementScales, bandPath, looksOf, MARGIN, marksPath, nearest, OTHER } from "./agreement";
import { SHAPES, type Shape } from "./scales";

const PAIRS = [
  { id: "a", measured: 1, predicted: 1.2, series: "one" },
  { id: "b", measured: 10, predicted: 8, series: "two" },
];
const scales = agreementScales(PAIRS, { width: 500, height: 400 });

describe("axes", () => {
  it("share one domain, so that equal is the diagonal", () => {
    expect(scales.x.domain()).toEqual(scales.y.domain());
    expect(scales.x.domain()[0]).toBeLessThan(1);
    expect(scales.x(10)).toBeLessThan(500 - MARGIN.right);
  });
});

describe("marks", () => {
  it.each(SHAPES)("begin at their point, one shape a pair", (shape) => {
    const path = marksPath(PAIRS, shape, scales);
    expect(path.match(/M/g)).toHaveLength(PAIRS.length);
    expect(path).not.toContain("NaN");
  });
  it("stand around their point", () => {
    const [x, y] = [scales.x(1), scales.y(1.2)];
    const begin = /^M([\d.]+),([\d.]+)L/.exec(marksPath(PAIRS.slice(0, 1), SHAPES[2] as Shape, scales));
    expect(Number(begin?.[1])).toBeCloseTo(x - 3, 0);
    expect(Number(begin?.[2])).toBeCloseTo(y - 3, 0);
  });
  it("have bands that hold their own edge", () => {
    const corner = /^M([\d.]+),([\d.-]+)/.exec(bandPath(scales, 0.25));
    expect(Number(corner?.[2])).toBeCloseTo(scales.y((scales.x.domain()[0] ?? 0) * 1.25), 0);
  });
});

describe("looks", () => {
  it("are different for the largest, and one for the rest", () => {
    const names = Array.from({ length: 10 }, (_, place) => Array(10 - place).fill(`s${place}`)).flat();
    const looks = looksOf(names);
    expect(looks.map((each) => each.name)).toEqual(["s0", "s1", "s2", "s3", "s4", "s5", OTHER]);
    expect(looks.at(-1)?.n).toBe(4 + 3 + 2 + 1);
    expect(new Set(looks.map((each) => each.colour)).size).toBe(7);
    expect(new Set(looks.map((each) => each.shape)).size).toBe(7);
  });
});

describe("nearest", () => {
  it("takes the nearest point within reach, or none", () => {
    expect(nearest(PAIRS, scales, [scales.x(10) + 5, scales.y(8)])?.id).toBe("b");
    expect(nearest(PAIRS, scales, [scales.x(10), scales.y(8) - 60])).toBeUndefined();
  });
});
