import { expect, test } from "vitest";
import type { PlanAnswer } from "../../../api/queries/plans";
import { type Chosen, NOTHING, stopsOf } from "./fields";
import { placeFindings } from "./findings";
import { changedFields, estimateQuestion, keepsOwn, pinnedQuestion, strategyOf } from "./question";

const chosen = (part: Partial<Chosen>): Chosen => ({ ...NOTHING, ...part });
const plan = {
  backend: "titan",
  release: "0.2.2",
  strategy: {
    ...{
      tp: 4,
      pp: 4,
      cp: 1,
      ep: 1,
      vpp: 8,
      dp: 4,
      dp_replicate: 1,
      dp_shard: 4,
      sp: true,
      overlap_tp: true,
    },
    ...{ micro_batch_size: 1, num_microbatches: 128, microbatch_group_size: 4, schedule: "interleaved_zb" },
    ...{ recompute: "selective", recompute_modules: ["norm", "activation"], zero_stage: 1 },
  },
  problem: {
    model: { name: "m" },
    cluster: { pools: [{ devices_per_node: 8, num_nodes: 8 }] },
    workload: { global_batch_size: 512 },
    constraints: { pins: { cp: 1 }, backends: ["any"] },
    profile: { profile_id: "ab" },
  },
} as unknown as PlanAnswer;

test("nothing changed: the plan's own strategy, in the words of the wire", () => {
  const given = strategyOf(plan, NOTHING);
  expect(given).toMatchObject({
    tp: 4,
    dp_shard: 4,
    num_microbatches: 128,
    recompute_modules: "norm+activation",
  });
  expect(given).not.toHaveProperty("dp");
});

test("the plan's own relief is asked for where it is needed, a chosen or pinned one as it is", () => {
  expect(strategyOf(plan, NOTHING).recompute).toBe("selective-where-needed");
  expect(strategyOf(plan, chosen({ recompute: "full" })).recompute).toBe("full");
  const pinned = structuredClone(plan);
  Object.assign(pinned.problem.constraints ?? {}, { pins: { recompute: "selective" } });
  expect(strategyOf(pinned, NOTHING).recompute).toBe("selective");
});

test("another workload, cluster and back-end are asked for with what they leave to the service", () => {
  const more = estimateQuestion(plan, chosen({ global_batch_size: "1024", precision: "fp8" })) as never as {
    workload: object;
    strategy: object;
  };
  expect(more.workload).toMatchObject({ global_batch_size: 1024, precision: "fp8" });
  expect(more.strategy).not.toHaveProperty("num_microbatches");
  const there = estimateQuestion(plan, chosen({ cluster: "dgx-a100-80g", backend: "native" })) as object;
  expect(there).toMatchObject({
    cluster: "dgx-a100-80g",
    devices: 64,
    constraints: { backends: ["native"] },
  });
  expect(there).toMatchObject({ profile: "none", strategy: { tp: 4, sp: true } });
  expect(there).not.toHaveProperty("strategy.overlap_tp");
  expect(pinnedQuestion(plan, chosen({ cluster: "lab", tp: "8" }))).toMatchObject({
    cluster: "lab",
    constraints: { pins: { cp: 1, tp: 8 } },
  });
});

test("what follows from a changed degree is left to the service", () => {
  const given = strategyOf(plan, chosen({ tp: "8" }));
  expect(given).toMatchObject({ tp: 8, pp: 4, sp: true, vpp: 8, schedule: "interleaved_zb" });
  for (const name of ["dp_shard", "dp_replicate", "num_microbatches"]) expect(given).not.toHaveProperty(name);
});

test("without stages there is no schedule to keep, unless it was chosen", () => {
  expect(strategyOf(plan, chosen({ pp: "1" }))).not.toHaveProperty("schedule");
  expect(strategyOf(plan, chosen({ pp: "1", schedule: "1f1b" }))).toMatchObject({ pp: 1, schedule: "1f1b" });
});

test("chunks stay between looped schedules only", () => {
  expect(strategyOf(plan, chosen({ schedule: "interleaved" }))).toMatchObject({ vpp: 8 });
  expect(strategyOf(plan, chosen({ schedule: "1f1b" }))).not.toHaveProperty("vpp");
});

test("the plan's value is chosen where it would not stand by itself", () => {
  expect(keepsOwn(plan, chosen({ tp: "8", vpp: "2" }), "vpp")).toBe(true);
  expect(keepsOwn(plan, chosen({ schedule: "1f1b" }), "vpp")).toBe(false);
  expect(keepsOwn(plan, chosen({ schedule: "1f1b" }), "nic_bandwidth")).toBe(true);
});

test("what is no number goes as it is, so that it is refused and not lost", () => {
  expect(strategyOf(plan, chosen({ tp: "many" })).tp).toBe("many");
});

test("levers and devices are of the question, not of the strategy", () => {
  const question = estimateQuestion(plan, chosen({ memory_capacity: "1.5", devices: "128" }));
  expect(question).toMatchObject({ scale: { memory_capacity: 1.5 }, devices: 128, profile: "ab" });
  expect(question.strategy).not.toHaveProperty("dp_shard");
});

test("what is changed is asked inside the plan's own back-end", () => {
  expect(estimateQuestion(plan, NOTHING).constraints).toEqual({
    pins: { cp: 1 },
    backends: ["titan==0.2.2"],
  });
});

test("changed fields become pins beside the plan's own", () => {
  const asked = pinnedQuestion(plan, chosen({ tp: "2", optimizer_offload: "true", nic_bandwidth: "2" }), "c");
  expect(asked.constraints?.pins).toEqual({ cp: 1, tp: 2, optimizer_offload: true });
  expect(asked.cluster).toBe("c");
  expect(asked.constraints?.backends).toEqual(["titan==0.2.2"]);
});

test("a slider stops at divisors, and where it stands", () => {
  expect(stopsOf(plan, "tp", 4)).toEqual([1, 2, 4, 8, 16, 32, 64]);
  expect(stopsOf(plan, "tp", 3)).toEqual([1, 2, 3, 4, 8, 16, 32, 64]);
  expect(stopsOf(plan, "devices", 64)).toEqual([8, 16, 32, 64, 128, 256, 512]);
});

test("a finding stands beside the changed field that its rule is about", () => {
  const finding = {
    pointer: "/strategy/tp",
    detail: "tp * cp * pp = 12 does not divide the 64 devices",
    hint: null,
    also: ["/strategy/cp", "/strategy/pp", "/devices"],
  };
  expect(Object.keys(placeFindings([finding], ["tp"]).at)).toEqual(["tp"]);
  expect(Object.keys(placeFindings([finding], []).at).sort()).toEqual(["cp", "devices", "pp", "tp"]);
  const pointed = { pointer: "/devices", detail: "a node has 8", hint: null };
  expect(Object.keys(placeFindings([pointed], ["tp"]).at)).toEqual(["devices"]);
  const lever = { pointer: "/scale/nic_bandwidth", detail: "must be greater than 0", hint: null };
  expect(Object.keys(placeFindings([lever], []).at)).toEqual(["nic_bandwidth"]);
  const uncontrolled = { pointer: "/strategy/overlap_tp", detail: "needs tp > 1", hint: null };
  expect(placeFindings([uncontrolled], ["tp"]).rest).toEqual([uncontrolled]);
  const other = { pointer: "/workload/routing", detail: "no tp there", hint: null };
  expect(placeFindings([other], ["tp"]).rest).toEqual([other]);
  expect(changedFields(chosen({ tp: "8" }))).toEqual(["tp"]);
});
