import { expect, test } from "vitest";
import {
  type MemoryStage,
  type MemoryView,
  memoryPieces,
  memorySentence,
  offloadWords,
  orderedStages,
  recomputeWords,
  spareWords,
} from "./stages";

const GIB = 2 ** 30;
const plain = (text: string) => text.replaceAll("\u00a0", " ");

const stage = (number: number, weights: number): MemoryStage => ({
  stage: number,
  layers: 4,
  peak_memory_bytes: { total: weights * GIB + 2, buffers: 1, kv_cache: 1, weights: weights * GIB },
  spare_bytes: (70 - weights) * GIB,
  recompute: { policy: "none" },
  offload: {},
});
const view: MemoryView = {
  plan_id: "0".repeat(64),
  device_memory_bytes: 80 * GIB,
  limit_bytes: 70 * GIB,
  worst_stage: 1,
  stages: [stage(0, 20), stage(1, 63), stage(2, 63)],
};

test("parts stand in the order of the legend, new ones last, and the total is none of them", () => {
  expect(memoryPieces(stage(0, 1)).map((each) => each.name)).toEqual(["weights", "buffers", "kv_cache"]);
});

test("the fullest first; equals by their number", () => {
  expect(orderedStages(view, "fullest").map((each) => each.stage)).toEqual([1, 2, 0]);
  expect(orderedStages(view, "stage")).toBe(view.stages);
});

test("the sentence names the fullest stage, the limit and the margin", () => {
  expect(plain(memorySentence(view))).toBe(
    "Stage 1 is the fullest of 3 stages: 63.0 GiB of the 70.0 GiB that may be used (90.0 %); the emptiest holds 20.0 GiB. 10.0 GiB of a device's 80.0 GiB are kept free.",
  );
  expect(plain(memorySentence({ ...view, fits_probability: 0.9731 }))).toMatch(
    /It fits with a chance of 97\.3 %\.$/,
  );
  expect(plain(spareWords(-GIB))).toBe("1.0 GiB too much");
});

test("recompute and offload are sentences", () => {
  const selective = { policy: "selective", modules: ["norm", "activation"] };
  expect(recomputeWords({ policy: "none", modules: [], num_layers_per_chunk: [] })).toContain("Nothing");
  expect(recomputeWords({ ...selective, num_layers_per_chunk: [2, 2] })).toBe(
    "Selective recompute of norm, activation, in the first 2 layers of each of 2 chunks.",
  );
  expect(recomputeWords({ policy: "full", modules: [], num_layers_per_chunk: [3] })).toBe(
    "Full recompute of whole layers, in the first 3 layers.",
  );
  expect(recomputeWords({ ...selective, num_layers_per_chunk: [2, 1] })).toContain(
    "in 3 layers: the first 2, 1 of",
  );
  expect(offloadWords({ optimizer: false, activation_layers: 0 })).toContain("Nothing");
  expect(offloadWords({ optimizer: true, activation_layers: 2 })).toBe(
    "The optimizer's states and the activations of 2 layers are offloaded to the host.",
  );
});
