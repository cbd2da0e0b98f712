import { expect, test } from "vitest";
import type { PlanAnswer } from "../../api/queries/plans";
import { questionOf } from "../new-plan/question";
import { readNewPlanSearch } from "../new-plan.search";
import { searchOfProblem } from "./questionAgain";

const pool = { devices_per_node: 8, num_nodes: 4 };
const problem = {
  model: { name: "mixtral-8x7b" },
  cluster: { name: "dgx-h100", pools: [pool] },
  workload: { global_batch_size: 256, sequence_length: 4096, precision: "fp8", optimizer: "adam" },
  constraints: {
    backends: ["megatron", "torchtitan==0.2.2"],
    pins: { tp: 8, sp: true },
    forbids: ["cp"],
    memory_margin_fraction: 0.07,
    fits: 0.99,
  },
  objective: { minimize: "cost", price_per_device_hour: 2.5 },
  profile: { profile_id: "p".repeat(64) },
  calibration: { calibration_id: "c".repeat(64) },
} as unknown as PlanAnswer["problem"];

test("the question of a plan, asked again, is the same question", () => {
  const search = readNewPlanSearch(JSON.parse(JSON.stringify(searchOfProblem(problem))));
  expect(JSON.parse(JSON.stringify(questionOf(readNewPlanSearch.full(search), {})))).toEqual({
    model: "mixtral-8x7b",
    cluster: "dgx-h100",
    devices: 32,
    workload: problem.workload,
    constraints: problem.constraints,
    objective: problem.objective,
    prefer: "fastest",
    profile: "p".repeat(64),
    calibration: "c".repeat(64),
  });
});

test("a plan of datasheets is asked again of datasheets", () => {
  const { profile: _, ...plain } = problem;
  expect(searchOfProblem(plain as typeof problem).profile).toBe("none");
});
