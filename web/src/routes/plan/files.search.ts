import { oneOf, searchReader, text } from "../../lib/search";

export const EMIT_TARGETS = [
  "megatron",
  "megatron-bridge",
  "deepspeed",
  "torchtitan",
  "native",
  "accelerate",
  "maxtext",
  "mindspeed",
] as const;
export const LAUNCHERS = [
  "torchrun",
  "slurm",
  "kubernetes",
  "trainjob",
  "pytorchjob",
  "volcano",
  "mpirun",
  "mpijob",
  "ray",
  "ray-train",
  "ascendjob",
] as const;

/** For which software and launcher, and which file is open ("" = the first). */
export const readFilesSearch = searchReader({
  target: oneOf(EMIT_TARGETS, "megatron"),
  launcher: oneOf(LAUNCHERS, "torchrun"),
  version: text(),
  file: text(),
});
