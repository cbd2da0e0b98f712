import { describe, expect, test } from "vitest";
import { boxAt, chipCorner, columnsFor, deviceAt, layoutOf, neighbour, nestingOf } from "./layout";

const BOXES = [
  { name: "node", size: 8 },
  { name: "leaf", size: 256 },
  { name: "spine", size: 2048 },
];

describe("nestingOf", () => {
  test("of boxes of the same devices the first stands, and all devices are in the last", () => {
    const boxes = [
      { name: "node", size: 8 },
      { name: "scale_up", size: 8 },
      { name: "leaf", size: 256 },
    ];
    expect(nestingOf(boxes, 64)).toEqual([
      { name: "node", size: 8 },
      { name: "leaf", size: 64 },
    ]);
  });
  test("a domain of many nodes stands around them", () => {
    const boxes = [
      { name: "scale_up", size: 72 },
      { name: "node", size: 4 },
    ];
    expect(nestingOf(boxes, 144).map((each) => each.size)).toEqual([4, 72, 144]);
  });
  test("a block that borders cut through is left out", () => {
    expect(
      nestingOf(
        [
          { name: "node", size: 8 },
          { name: "odd", size: 12 },
        ],
        48,
      ).map((each) => each.size),
    ).toEqual([8, 48]);
  });
});

test("a grid leaves few cells empty", () => {
  expect(columnsFor(8, 1, 1, 0, 2)).toBe(4);
  expect(columnsFor(4, 1, 1, 0, 1)).toBe(2);
  expect(columnsFor(7, 1, 1, 0, 7)).toBe(7);
});

test.each([1, 5, 8, 64, 384, 1000, 16_384])("every one of %i devices is found where it stands", (devices) => {
  const layout = layoutOf(BOXES, devices, 1.8);
  const found = Array.from({ length: devices }, (_, device) => {
    const { x, y } = chipCorner(layout, device);
    const inside = x >= 0 && y >= 0 && x + 1 <= layout.width && y + 1 <= layout.height;
    return inside ? deviceAt(layout, x + 0.5, y + 0.5) : undefined;
  });
  expect(found).toEqual(Array.from({ length: devices }, (_, device) => device));
});

test("boxes hold their devices, the last one only as many as there are", () => {
  const layout = layoutOf(BOXES, 384, 1.8);
  const leaf = layout.levels.findIndex((each) => each.name === "leaf");
  expect(layout.levels[leaf]?.count).toBe(2);
  const [full, half] = [boxAt(layout, leaf, 0), boxAt(layout, leaf, 1)];
  expect(half.width * half.height).toBeLessThan(full.width * full.height);
  for (const [box, first, last] of [
    [full, 0, 255],
    [half, 256, 383],
  ] as const) {
    for (const device of [first, last]) {
      const { x, y } = chipCorner(layout, device);
      expect(x >= box.x && x + 1 <= box.x + box.width && y >= box.y && y + 1 <= box.y + box.height).toBe(
        true,
      );
    }
  }
});

test("arrows reach the next chip over the gaps, and stop at the border", () => {
  const layout = layoutOf(BOXES, 2048, 1.8);
  expect(neighbour(layout, 0, "right")).toBe(1);
  expect(neighbour(layout, 0, "left")).toBe(0);
  expect(neighbour(layout, 0, "up")).toBe(0);
  for (const device of [0, 3, 700, 2047]) {
    const right = neighbour(layout, device, "right");
    if (right !== device) expect(neighbour(layout, right, "left")).toBe(device);
  }
  let [at, steps] = [0, 0];
  for (let next = neighbour(layout, at, "down"); next !== at; next = neighbour(layout, at, "down")) {
    [at, steps] = [next, steps + 1];
  }
  expect(steps).toBeGreaterThan(10);
});
