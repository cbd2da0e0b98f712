import { expect, test } from "vitest";
import { chipCorner, layoutOf } from "./layout";
import { clampView, largestZoom, panBy, projectionOf, revealing, WHOLE, zoomAt } from "./viewport";

const layout = layoutOf([{ name: "node", size: 8 }], 1024, 1.8);
const frame = { width: 900, height: 500 };

test("the whole map fits", () => {
  const { scale, left, top } = projectionOf(WHOLE, layout, frame);
  expect(-left * scale).toBeGreaterThanOrEqual(0);
  expect(-top * scale).toBeGreaterThanOrEqual(0);
  expect((layout.width - left) * scale).toBeLessThanOrEqual(frame.width);
  expect((layout.height - top) * scale).toBeLessThanOrEqual(frame.height);
});

test("what is under the pointer stays there while zooming", () => {
  const at = { x: 450, y: 250 };
  const under = (view: typeof WHOLE) => {
    const { scale, left, top } = projectionOf(view, layout, frame);
    return [left + at.x / scale, top + at.y / scale];
  };
  const near = zoomAt(WHOLE, 3, at, layout, frame);
  expect(near.zoom).toBeCloseTo(3);
  for (const [index, value] of under(near).entries()) expect(value).toBeCloseTo(under(WHOLE)[index] ?? 0);
});

test("zoom ends, and the map cannot be lost", () => {
  expect(zoomAt(WHOLE, 0.1, { x: 0, y: 0 }, layout, frame).zoom).toBe(1);
  expect(zoomAt(WHOLE, 1e9, { x: 0, y: 0 }, layout, frame).zoom).toBe(largestZoom(layout, frame));
  const near = clampView({ zoom: 4, x: 0.5, y: 0.5 }, layout, frame);
  const far = panBy(near, 1e6, 1e6, layout, frame);
  expect(projectionOf(far, layout, frame).left).toBeCloseTo(-4 / projectionOf(far, layout, frame).scale);
});

test("a chip outside the window is brought into it, one inside moves nothing", () => {
  const near = clampView({ zoom: 5, x: 0, y: 0 }, layout, frame);
  expect(revealing(near, chipCorner(layout, 0), layout, frame)).toBe(near);
  const moved = revealing(near, chipCorner(layout, 1023), layout, frame);
  const { scale, left, top } = projectionOf(moved, layout, frame);
  const chip = chipCorner(layout, 1023);
  expect((chip.x - left) * scale).toBeGreaterThan(0);
  expect((chip.x + 1 - left) * scale).toBeLessThanOrEqual(frame.width);
  expect((chip.y + 1 - top) * scale).toBeLessThanOrEqual(frame.height);
});
