import { expect, test } from "vitest";
import { type Curve, curvePath, curveScales, idealPath } from "./curves";

const point = (x: number, y: number | null) => ({ id: `${x}`, x, y, sure: true });
const BOX = { width: 400, height: 240 };
const CURVES: readonly Curve[] = [{ name: "a", points: [point(8, null), point(16, 100), point(64, 390)] }];

test("on two logarithmic axes ideal scaling is straight and above what is lost", () => {
  const scales = curveScales(CURVES, true, BOX);
  const [from, to] = idealPath(CURVES[0]?.points ?? [], scales)
    .slice(1)
    .split("L");
  expect(from).toBe(`${scales.x(16)} ${scales.y(100)}`);
  expect(to).toBe(`${scales.x(64)} ${scales.y(400)}`);
  expect(scales.y(400)).toBeLessThan(scales.y(390));
});

test("a point without a value is not on the line", () => {
  const scales = curveScales(CURVES, true, BOX);
  expect(curvePath(CURVES[0]?.points ?? [], scales).match(/[ML]/g)).toHaveLength(2);
});

test("one point has no ideal, none has no line, and scales stay finite", () => {
  const lonely: readonly Curve[] = [{ name: "a", points: [point(8, null)] }];
  const scales = curveScales(lonely, false, BOX);
  expect(idealPath([point(8, 3)], scales)).toBe("");
  expect(curvePath(lonely[0]?.points ?? [], scales)).toBe("");
  expect(Number.isFinite(scales.x(8)) && Number.isFinite(scales.y(1))).toBe(true);
});
