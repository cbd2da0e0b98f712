import { expect, test } from "vitest";
import { rowAt, rowsOf, sendTopOf, topOf } from "./rows";

test.each([1, 4, 8, 16, 64])("%i ranks: every row can be pressed, and a height names its rank", (ranks) => {
  const rows = rowsOf(ranks);
  expect(rows.row_px).toBeGreaterThanOrEqual(24);
  for (let rank = 0; rank < ranks; rank++) {
    expect(rowAt(rows, topOf(rows, rank))).toEqual({ rank, sends: false });
    expect(rowAt(rows, sendTopOf(rows, rank))).toEqual({ rank, sends: true });
  }
  expect(rowAt(rows, rows.height)).toBeUndefined();
  expect(rowAt(rows, -1)).toBeUndefined();
});
