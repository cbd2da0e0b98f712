import { expect, test } from "vitest";
import type { PlanSummary } from "../../api/queries/plans";
import { chosenWith, sortedPlans } from "./order";

const plan = (plan_id: string, part: Partial<PlanSummary>) => ({ plan_id, ...part }) as PlanSummary;
const PLANS = [
  plan("a", { step_time_s: 2, model: "b", cost_per_step: null }),
  plan("b", { step_time_s: 10, model: "a", cost_per_step: 3 }),
  plan("c", { step_time_s: 1, model: "c" }),
];
const ids = (by: string, descending: boolean) =>
  sortedPlans(PLANS, { by, descending }).map((each) => each.plan_id);

test("numbers sort as numbers, names as names, either way", () => {
  expect(ids("step", false)).toEqual(["c", "a", "b"]);
  expect(ids("step", true)).toEqual(["b", "a", "c"]);
  expect(ids("model", false)).toEqual(["b", "a", "c"]);
});

test("what has no value stands last", () => {
  expect(ids("price", false)).toEqual(["b", "a", "c"]);
  expect(ids("price", true)).toEqual(["b", "a", "c"]);
});

test("two are compared at most; choosing again takes one back", () => {
  expect(chosenWith([], "a")).toEqual(["a"]);
  expect(chosenWith(["a", "b"], "c")).toEqual(["b", "c"]);
  expect(chosenWith(["a", "b"], "a")).toEqual(["b"]);
});
