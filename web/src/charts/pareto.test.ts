import { expect, test } from "vitest";
import { nearest, paretoFront, paretoLayout, placeLabels, stairs } from "./pareto";

const GIB = 2 ** 30;
const point = (id: string, step_time_s: number, gib: number, fits = true) => ({
  id,
  step_time_s,
  peak_memory_bytes: gib * GIB,
  fits,
});

test("the front holds what nothing beats in both, and nothing that does not fit", () => {
  const front = paretoFront([
    point("slow and small", 3, 40),
    point("best", 1, 70),
    point("beaten", 2, 71),
    point("as fast, larger", 1, 75),
    point("too large", 0.5, 90, false),
  ]);
  expect(front.map((each) => each.id)).toEqual(["best", "slow and small"]);
});

test("faster is further left, smaller is lower; far beyond the limit stands on the edge", () => {
  const { marks, limit } = paretoLayout(
    [point("fast", 1, 60), point("small", 2, 50), point("huge", 1.5, 1000, false)],
    80 * GIB,
    { width: 600, height: 300 },
  );
  const [fast, small, huge] = marks;
  expect(fast?.x).toBeLessThan(small?.x ?? 0);
  expect(small?.y).toBeGreaterThan(fast?.y ?? 0);
  expect(limit).toBeLessThan(fast?.y ?? 0);
  expect(huge?.beyond).toBe(true);
  expect(fast?.beyond).toBe(false);
});

test("one choice alone has a place", () => {
  const { marks } = paretoLayout([point("only", 5, 20)], 80 * GIB, { width: 400, height: 200 });
  expect(marks.every((each) => Number.isFinite(each.x) && Number.isFinite(each.y))).toBe(true);
});

test("the front is drawn as stairs", () => {
  expect(
    stairs(
      [
        { x: 1, y: 2 },
        { x: 5, y: 8 },
      ],
      9,
    ),
  ).toBe("M1 2H5V8H9");
  expect(stairs([], 9)).toBe("");
});

test("the nearest mark within reach", () => {
  const marks = [
    { x: 0, y: 0 },
    { x: 30, y: 0 },
  ];
  expect(nearest(marks, { x: 22, y: 3 })).toBe(marks[1]);
  expect(nearest(marks, { x: 100, y: 100 })).toBeUndefined();
});

test("a name avoids the marks of others, and is left out where there is no room", () => {
  const own = { x: 100, y: 100, text: "tp 4" };
  const right = { x: 125, y: 100 };
  const box = { width: 400, height: 200 };
  expect(placeLabels([own], [own], box)[0]?.left).toBe(110);
  expect(placeLabels([own], [own, right], box)[0]?.left).toBeLessThan(100);
  const crowd = [-30, -20, -10, 0, 10, 20, 30].flatMap((dx) =>
    [-20, -10, 0, 10, 20].map((dy) => ({ x: 100 + dx, y: 100 + dy })),
  );
  expect(placeLabels([own], crowd, box)).toEqual([]);
});

test("names never lie on each other", () => {
  const wanted = Array.from({ length: 6 }, (_, index) => ({ x: 200, y: 100 + index, text: "a long name" }));
  const placed = placeLabels(wanted, [], { width: 400, height: 200 });
  expect(placed.length).toBeGreaterThan(1);
  expect(placed.length).toBeLessThan(6);
  expect(new Set(placed.map((each) => `${each.left} ${each.base}`)).size).toBe(placed.length);
});
