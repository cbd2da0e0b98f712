import { expect, test } from "vitest";
import { spread, type TornadoRow, tornadoLayout } from "./layout";

const row = (name: string, lowest: number, highest: number): TornadoRow => ({
  name,
  lowest,
  highest,
  points: [],
});

test("bars begin at no change and share one scale", () => {
  const { x, rows } = tornadoLayout([row("a", -0.1, 0.2), row("b", -0.05, 0.1)], { width: 800, names: 160 });
  const [first, second] = rows;
  expect(first?.bars.map((bar) => bar.kind)).toEqual(["faster", "slower"]);
  expect(first?.bars[0]?.to).toBe(x(0));
  const length = (bar: { from: number; to: number } | undefined) => (bar ? bar.to - bar.from : 0);
  expect(length(first?.bars[1])).toBeCloseTo(2 * length(second?.bars[1]));
  expect(second?.y).toBeGreaterThan(first?.y ?? 0);
});

test("without any effect there is still a scale, and no bar", () => {
  const { rows, x } = tornadoLayout([row("a", 0, 0)], { width: 400, names: 0 });
  expect(rows[0]?.bars).toEqual([]);
  expect(Number.isFinite(x(0))).toBe(true);
});

test("a point outside the bar, of a strategy that does not fit, is on the scale", () => {
  const far = { change: -0.2, effect: 0.5, verdict: "unfit" as const };
  const { x } = tornadoLayout([{ ...row("a", 0, 0.1), points: [far] }], { width: 600, names: 0 });
  expect(x(0.5)).toBeLessThanOrEqual(600);
});

test("points on one place stand beside each other, around it, in their order", () => {
  expect(spread([100, 100, 100], 10)).toEqual([90, 100, 110]);
  expect(spread([0, 50, 100], 10)).toEqual([0, 50, 100]);
  const placed = spread([103, 100, 101], 10);
  const [a = 0, b = 0, c = 0] = [placed[1], placed[2], placed[0]];
  expect(b - a).toBeGreaterThanOrEqual(10);
  expect(c - b).toBeGreaterThanOrEqual(10);
});
