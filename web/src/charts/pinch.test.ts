import { expect, test } from "vitest";
import { pinchBetween } from "./pinch";

const at = (x: number, y: number) => ({ x, y });

test("parting fingers come closer about their middle, wherever the middle goes", () => {
  expect(pinchBetween([at(100, 50), at(200, 50)], [at(50, 50), at(250, 50)])).toEqual({
    factor: 2,
    from: at(150, 50),
    dx: 0,
    dy: 0,
  });
  expect(pinchBetween([at(0, 0), at(30, 40)], [at(10, 20), at(40, 60)])).toEqual({
    factor: 1,
    from: at(15, 20),
    dx: 10,
    dy: 20,
  });
});

test("two fingers on one spot do not make the picture infinite", () => {
  expect(pinchBetween([at(5, 5), at(5, 5)], [at(5, 5), at(5, 5)]).factor).toBe(1);
  expect(pinchBetween([at(5, 5), at(5, 5)], [at(0, 5), at(80, 5)]).factor).toBe(10);
});
