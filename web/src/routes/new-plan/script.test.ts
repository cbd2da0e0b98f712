import { expect, test } from "vitest";
import type { ScriptAnswer } from "../../api/queries/scripts";
import { NOTHING_SAID } from "../../lib/launchScript";
import { readNewPlanSearch } from "../new-plan.search";
import { questionOf } from "./question";
import { filledIn } from "./script";

const dropped = { name: "train.sh", text: "--num-layers 4", beside: NOTHING_SAID };
const answer = {
  ...{ name: "train.sh", model: { name: "train", hidden_size: 64 }, backend: "megatron", devices: 16 },
  ...{ strategy: { tp: 2 }, pins: "tp=2", launches: 1, vocabulary_from: "--vocab-size 64" },
  workload: { global_batch_size: 64, sequence_length: 2048, precision: "fp8", gradient_dtype: "bf16" },
  arguments: { used: [], no_influence: [], not_modelled: [], unknown: [] },
} as unknown as ScriptAnswer;
const typed = readNewPlanSearch.full({ optimizer: "sgd", pins: "cp=2" });

test("a script fills in model, workload, devices and back-end, and leaves what it does not say", () => {
  const [part] = filledIn(dropped, answer);
  expect({ ...typed, ...part }).toEqual({
    ...typed,
    ...{
      modelFile: "train.sh",
      backend: "megatron",
      batch: "64",
      seq: "2048",
      devices: "16",
      precision: "fp8",
    },
  });
  const [silent] = filledIn(dropped, { ...answer, workload: { precision: "fp4" }, devices: null });
  expect(silent).toEqual({ modelFile: "train.sh", backend: "megatron" });
});

test("the question has what the form has no field for, and what is typed over it", () => {
  const [part, documents] = filledIn(dropped, answer);
  const asked = JSON.parse(JSON.stringify(questionOf({ ...typed, ...part, batch: "8" }, documents)));
  expect(asked.model).toEqual({ name: "train", hidden_size: 64 });
  expect(asked.workload).toEqual({
    ...{ global_batch_size: 8, sequence_length: 2048, precision: "fp8", optimizer: "sgd" },
    gradient_dtype: "bf16",
  });
  const other = questionOf({ ...typed, ...part, modelFile: "config.json" }, documents);
  expect(other.workload).not.toHaveProperty("gradient_dtype");
});
