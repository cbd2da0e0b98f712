import { expect, test } from "vitest";
import { type Training, trainingOf, typedTraining } from "./training";

const empty = { training: "pretrain", task: "language_model", trainingOptions: "" } as const;

test("what every form says at first is no document", () => {
  expect(trainingOf(empty)).toBeUndefined();
});

test("options are read by their names", () => {
  const said = trainingOf({
    training: "qlora",
    task: "dpo",
    trainingOptions: "rank=64 targets=q+v dora base=nf4",
  });
  expect(said).toEqual({ kind: "qlora", task: "dpo", rank: 64, targets: "q,v", dora: true, base: "nf4" });
});

test("frozen towers are read and come back", () => {
  const said = { kind: "full", task: "language_model", frozen_towers: "vision,audio" };
  expect(
    trainingOf({ training: "full", task: "language_model", trainingOptions: "frozen_towers=vision+audio" }),
  ).toEqual(said);
  const plan = { ...said, frozen_towers: ["vision", "audio"] } as unknown as Training;
  expect(typedTraining(plan).trainingOptions).toBe("frozen_towers=vision+audio");
});

test("a plan's training comes back as it was", () => {
  const training = {
    kind: "lora",
    rank: 8,
    targets: ["q", "v"],
    dora: false,
    ends: false,
    base: null,
    double_quantization: true,
    task: "dpo",
    reference: "shared",
  } as unknown as Training;
  const typed = { ...empty, ...typedTraining(training) };
  expect(typed.trainingOptions).toContain("targets=q+v");
  expect(trainingOf(typed)).toMatchObject({
    kind: "lora",
    rank: 8,
    targets: "q,v",
    task: "dpo",
    reference: "shared",
  });
});
