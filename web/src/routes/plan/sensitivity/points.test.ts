import { expect, test } from "vitest";
import type { SensitivityPoint } from "../../../api/queries/sensitivity";
import { changesOf, mergedPoints, verdictOf, verdictWords } from "./points";

const point = (part: Partial<SensitivityPoint>): SensitivityPoint => ({
  ...{ lever: "compute_rate", change: 0.1, fits: true, reason: "" },
  ...part,
});

test("changes go both ways, in order", () => {
  expect(changesOf("10,20")).toEqual([-0.2, -0.1, 0.1, 0.2]);
  expect(changesOf("50")).toEqual([-0.5, 0.5]);
});

test("what was searched replaces what was estimated, and nothing else", () => {
  const estimated = [point({}), point({ change: 0.2 }), point({ lever: "nic_bandwidth" })];
  const searched = [point({ change: 0.2, stays_best: false })];
  expect(mergedPoints(estimated, searched).map(verdictOf)).toEqual(["unasked", "flips", "unasked"]);
});

test("what becomes of the plan, in words", () => {
  expect(verdictWords(point({}))).toBe("fits");
  expect(verdictWords(point({ fits: false }))).toBe("does not fit");
  expect(verdictWords(point({ stays_best: true }))).toBe("stays best");
  expect(verdictWords(point({ stays_best: false, best_strategy_changes: ["tp", "dp"] }))).toBe(
    "another plan is best",
  );
  expect(verdictWords(point({ fits: false, stays_best: false }))).toBe("does not fit; no plan does");
});
