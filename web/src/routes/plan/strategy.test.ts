import { expect, test } from "vitest";
import { strategyParts } from "./strategy";

const plain = {
  tp: 4,
  pp: 1,
  dp: 8,
  cp: 1,
  ep: 1,
  etp: 1,
  vpp: 1,
  zero_stage: 1,
  micro_batch_size: 2,
  num_microbatches: 16,
};

test("what is off is left out", () => {
  const written = strategyParts({ ...plain, schedule: "1f1b", sp: false, recompute: "none" });
  expect(written.map((each) => `${each.name} ${each.value}`)).toEqual([
    "tp 4",
    "pp 1",
    "dp 8",
    "zero 1",
    "micro-batch 2 × 16",
  ]);
});

test("offload says of which layers", () => {
  const offload = (said: object) => strategyParts({ ...plain, recompute: "none", ...said }).at(-1);
  expect(offload({ activation_offload: true })).toEqual({ name: "offload", value: "activations" });
  const needed = { activation_offload: "where-needed", optimizer_offload: true };
  expect(offload(needed)).toEqual({ name: "offload", value: "activations where-needed, optimizer" });
  expect(offload({ activation_offload: false })?.name).toBe("micro-batch");
});

test("what is on is named", () => {
  const strategy = {
    ...plain,
    pp: 4,
    vpp: 2,
    ep: 8,
    schedule: "interleaved",
    sp: true,
    recompute: "full",
    optimizer_offload: true,
  };
  expect(strategyParts(strategy).map((each) => each.name)).toEqual([
    ...[
      "tp",
      "pp",
      "dp",
      "ep",
      "vpp",
      "schedule",
      "zero",
      "micro-batch",
      "sequence parallel",
      "recompute",
      "offload",
    ],
  ]);
});
