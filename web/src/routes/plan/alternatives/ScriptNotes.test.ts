import { expect, test } from "vitest";
import type { PlanAnswer } from "../../../api/queries/plans";
import { scriptNotes } from "./ScriptNotes";

const plan = {
  problem: {
    workload: { global_batch_size: 512, sequence_length: 2048 },
    cluster: { pools: [{ devices_per_node: 8, num_nodes: 2 }] },
  },
} as unknown as PlanAnswer;

test("what makes a script another question is told", () => {
  const workload = { global_batch_size: 256, sequence_length: 2048, optimizer: "adam" };
  expect(scriptNotes({ workload, devices: 32 }, plan)).toEqual([
    "global_batch_size: the script has 256, this plan 512",
    "devices: the script has 32, this plan 16",
  ]);
  expect(scriptNotes({ workload: {}, devices: null }, plan)).toEqual([]);
});
