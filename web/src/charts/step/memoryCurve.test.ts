import { expect, test } from "vitest";
import { BACKWARD_NS, gpipe } from "./gpipe.testdata";
import { bytesAt, memoryCurve } from "./memoryCurve";

const step = gpipe(2, 500);
const memory = step.memory[0];
if (!memory) throw new Error("no rank");

test("the bytes at a moment are those of the change before it", () => {
  expect(bytesAt(memory, -1)).toBe(memory.resident_bytes);
  expect(bytesAt(memory, 0)).toBe(memory.resident_bytes + 1);
  expect(bytesAt(memory, step.makespan_ns - BACKWARD_NS / 2)).toBe(memory.resident_bytes + 1);
  expect(bytesAt(memory, step.makespan_ns)).toBe(memory.resident_bytes);
});

test("a thousand changes on a hundred pixels keep the peak and both ends", () => {
  const points = memoryCurve(memory, { from_ns: 0, to_ns: step.makespan_ns }, 100);
  expect(points.length).toBeLessThanOrEqual(4 * 101 + 2);
  expect(Math.max(...points.map((each) => each.bytes))).toBe(memory.peak_bytes);
  expect(points[0]?.x).toBe(0);
  expect(points.at(-1)?.x).toBe(100);
  const places = points.map((each) => each.x);
  expect(places).toEqual([...places].sort((a, b) => a - b));
});

test("a window without a change is level", () => {
  const points = memoryCurve(memory, { from_ns: 100, to_ns: 5_000 }, 300);
  expect(points.map((each) => each.bytes)).toEqual([101, 101]);
});
