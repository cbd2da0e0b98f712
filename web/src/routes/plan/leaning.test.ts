import { expect, test } from "vitest";
import type { LeaningView } from "../../api/queries/hardware";
import { leaningSentence, shapeWords } from "./leaning";

const view = (inputs: readonly string[], time_by_input: Record<string, number>) =>
  ({
    lookups: inputs.map((input) => ({ input })),
    num_lookups: inputs.length,
    time_by_input,
  }) as unknown as LeaningView;

test("what nothing measured is counted by kind, with its part of the time", () => {
  expect(
    leaningSentence(
      view(["measured", "extrapolated", "datasheet", "datasheet"], {
        measured: 0.6,
        extrapolated: 0.3,
        datasheet: 0.1,
      }),
    ),
  ).toBe(
    "This plan leans on 3 of 4 lookups that nothing measured (1 extrapolated, 2 datasheet): 40\u00a0% of the looked-up time.",
  );
});

test("a measured plan leans on nothing else", () => {
  expect(leaningSentence(view(["measured", "interpolated"], { measured: 1 }))).toBe(
    "All 2 numbers behind this plan are measured or lie between measured ones.",
  );
});

test("a shape is named", () => expect(shapeWords({ m: 512, group_size: 8 })).toBe("m 512 · group size 8"));
