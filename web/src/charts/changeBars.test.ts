import { expect, test } from "vitest";
import { changeBars } from "./changeBars";

test("less lies left of zero, more right of it, largest first", () => {
  const { bars, zero } = changeBars(
    [
      { name: "compute", value: -1 },
      { name: "tp", value: 3 },
      { name: "cp", value: 0 },
      { name: "host", value: 1e-9 },
    ],
    100,
    500,
  );
  expect(bars.map((each) => each.name)).toEqual(["tp", "compute"]);
  expect(zero).toBe(200);
  expect(bars[0]).toMatchObject({ x: 200, width: 300 });
  expect(bars[1]).toMatchObject({ x: 100, width: 100 });
});

test("no change at all is no bar", () => {
  expect(changeBars([{ name: "tp", value: 0 }], 0, 10).bars).toEqual([]);
});
