import { expect, test } from "vitest";
import type { TableFit } from "../../api/queries/hardware";
import { coverageByAxis, coverageSentence } from "./coverageRows";

const table = (operator: string, dtype: string, axis: string, measured: number, filled_in: number) =>
  ({
    operator,
    dtype,
    variant: "",
    axis,
    by_size: [{ octave: 3, measured, filled_in }],
  }) as unknown as TableFit;

test("tables are grouped by what their sizes are", () => {
  const found = coverageByAxis([
    table("matmul", "bf16", "m", 3, 1),
    table("grouped_matmul", "fp8", "m", 0, 4),
    table("norm", "bf16", "moved_bytes", 1, 0),
  ]);
  expect([...found.keys()]).toEqual(["m", "moved_bytes"]);
  expect(found.get("m")?.map((each) => each.name)).toEqual(["matmul bf16", "grouped matmul fp8"]);
  expect(coverageSentence(found.get("m") ?? [], "m")).toBe(
    "By m: 3 of 8 points of the grid are measured (38\u00a0%), the others are filled in. matmul bf16 is covered best.",
  );
});
