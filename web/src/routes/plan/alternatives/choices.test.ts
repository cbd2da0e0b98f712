import { expect, test } from "vitest";
import type { Explanation, PlanAnswer } from "../../../api/queries/plans";
import { choicesOf, choicesSentence, pinsOfMove, sorted } from "./choices";

const GIB = 2 ** 30;
const PLAN = {
  step_time_s: 10,
  peak_memory_bytes: 70 * GIB,
  alternatives: [
    {
      strategy: { tp: 4, dp: 2, recompute_modules: ["norm"], vpp: 2 },
      step_time_s: 11,
      peak_memory_bytes: 60 * GIB,
      slower_by: 0.1,
      differs_in: ["vpp", "dp"],
    },
  ],
} as unknown as PlanAnswer;
const EXPLANATION = {
  neighbours: [
    { move: "cp 1 -> 2", outcome: "illegal", reason: "cp does not divide", terms_s: [] },
    {
      move: "tp 4 -> 2",
      outcome: "does_not_fit",
      step_time_s: 9,
      slower_by: -0.1,
      peak_memory_bytes: 90 * GIB,
      over_limit_bytes: 10 * GIB,
      over_limit_stage: 1,
      reason: "",
      terms_s: [],
    },
  ],
} as unknown as Explanation;

test("the plan, its runners-up and its neighbours are one list", () => {
  const [plan, runnerUp, illegal, large] = choicesOf(PLAN, EXPLANATION);
  expect(plan?.pins).toBeNull();
  expect(runnerUp).toMatchObject({ id: "runner-up-1", name: "vpp 2", fits: true });
  expect(runnerUp?.pins).toEqual({ tp: 4, dp: 2, vpp: 2 });
  expect(illegal).toMatchObject({ id: "cp=2", fits: false, reason: "cp does not divide", step_time_s: null });
  expect(large).toMatchObject({ fits: false, reason: "stage 1 misses 10.0\u00a0GiB" });
});

test.each([
  ["tp 4 -> 8", { tp: 8 }],
  ["optimizer_offload false -> true", { optimizer_offload: true }],
  ["recompute selective -> none", { recompute: "none" }],
  ["a sentence", {}],
])("the pins of %s", (move, pins) => expect(pinsOfMove(move)).toEqual(pins));

test("rows without a number are last, up and down", () => {
  const choices = choicesOf(PLAN, EXPLANATION);
  const ids = (down: boolean) => sorted(choices, "step", down).map((each) => each.id);
  expect(ids(false)).toEqual(["tp=2", "plan", "runner-up-1", "cp=2"]);
  expect(ids(true)).toEqual(["runner-up-1", "plan", "tp=2", "cp=2"]);
  expect(sorted(choices, "kind", false)[0]?.id).toBe("plan");
});

test("the sentence counts what does not fit and what is illegal", () => {
  const said = choicesSentence(choicesOf(PLAN, EXPLANATION), 80 * GIB);
  expect(said).toContain("No choice beside the plan that fits is faster");
  expect(said).toContain(": 1 runner-up and 2 strategies one move away");
  expect(said).toContain("1 of which do not fit into 80.0\u00a0GiB and 1 break a rule");
});
