import { expect, test } from "vitest";
import { COVERAGE_ROW_PX, coverageLayout, coverageStep } from "./coverage";

const cell = (octave: number, measured: number, filled_in = 0) => ({ octave, measured, filled_in });

test("cells stand under their size, rows under each other", () => {
  const { cells, columns, cell_px } = coverageLayout(
    [
      { name: "matmul", cells: [cell(4, 3, 1), cell(6, 0, 4)] },
      { name: "norm", cells: [cell(7, 2)] },
    ],
    500,
    100,
  );
  expect(columns).toBe(4);
  expect(cell_px).toBe(64);
  expect(cells.map((each) => [each.x, each.y, each.share])).toEqual([
    [100, 0, 0.75],
    [228, 0, 0],
    [292, COVERAGE_ROW_PX, 1],
  ]);
});

test("nothing measured is an empty grid", () => {
  expect(coverageLayout([], 500, 100)).toMatchObject({ cells: [], columns: 0, cell_px: 0 });
});

test.each([
  [0, 0],
  [0.2, 1],
  [0.75, 2],
  [1, 3],
])("share %s has step %s", (share, step) => expect(coverageStep(share)).toBe(step));
