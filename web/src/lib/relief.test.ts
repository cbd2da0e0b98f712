import { expect, test } from "vitest";
import type { PlanAnswer } from "../api/queries/plans";
import { plainMove, reliefWord, stageRecompute, toldStrategy } from "./relief";

const plan = (pins: Record<string, string | boolean>) =>
  ({ problem: { constraints: { pins } } }) as unknown as PlanAnswer;

test("a plan relieves where it is needed, unless its question pins it", () => {
  expect(reliefWord(plan({}), "recompute", "full")).toBe("full-where-needed");
  expect(reliefWord(plan({}), "recompute", "none")).toBe("none");
  expect(reliefWord(plan({}), "activation_offload", true)).toBe("where-needed");
  expect(reliefWord(plan({}), "activation_offload", false)).toBe(false);
  expect(reliefWord(plan({ recompute: "full-first-4" }), "recompute", "full")).toBe("full-first-4");
});

test.each([
  ["recompute none -> full-where-needed", "recompute none -> full"],
  ["activation_offload false -> where-needed", "activation_offload false -> true"],
  ["tp 4 -> 8", "tp 4 -> 8"],
])("%s is %s in a comparison", (move, plain) => expect(plainMove(move)).toBe(plain));

const stage = (layers: number, again: number[], kept = 0) => ({
  layers,
  recompute: { policy: again.length > 0 ? "full" : "none", modules: [], num_layers_per_chunk: again },
  offload: { optimizer: false, activation_layers: kept },
});
const relieved = (stages: object[], said: object = {}, pins = {}) =>
  ({
    ...plan(pins),
    strategy: { tp: 2, recompute: "full", activation_offload: false, ...said },
    stages,
  }) as unknown as PlanAnswer;

test("a strategy says where not every layer is computed again", () => {
  expect(toldStrategy(relieved([stage(7, [4, 3]), stage(4, [2, 2])]))).toMatchObject({
    tp: 2,
    recompute: "full",
  });
  const some = relieved([stage(7, [4, 3]), stage(4, [1, 1])]);
  expect(toldStrategy(some)).toEqual({ tp: 2, recompute: "full-where-needed", activation_offload: false });
  const pinned = relieved([stage(7, [1])], {}, { recompute: "full-first-1" });
  expect(toldStrategy(pinned).recompute).toBe("full-first-1");
  const given = { ...relieved([stage(7, [1])]), origins: { given: { recompute: "full-first-1" } } };
  expect(toldStrategy(given as unknown as PlanAnswer).recompute).toBe("full-first-1");
  const offloaded = { recompute: "none", activation_offload: true };
  expect(toldStrategy(relieved([stage(7, [], 2)], offloaded))).toMatchObject({
    recompute: "none",
    activation_offload: "where-needed",
  });
  expect(toldStrategy(relieved([stage(7, [], 7)], offloaded)).activation_offload).toBe(true);
});

test("a stage says how many of its layers are computed again", () => {
  const written = (layers: number, recompute: object) =>
    stageRecompute({ layers, recompute } as unknown as PlanAnswer["stages"][number]);
  expect(written(7, { policy: "none", modules: [], num_layers_per_chunk: [] })).toBe("none");
  expect(written(10, { policy: "full", modules: [], num_layers_per_chunk: [2, 1] })).toBe("full 3/10");
  expect(written(4, { policy: "selective", modules: ["norm", "mlp"], num_layers_per_chunk: [4] })).toBe(
    "selective norm+mlp 4/4",
  );
});
