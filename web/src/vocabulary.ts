/* Written by `python -m docs.generate`; changes here are lost. */

export const SCHEDULES = [
  "gpipe",
  "1f1b",
  "interleaved",
  "zb_h1",
  "zbv",
  "dualpipev",
  "looped_bfs",
  "interleaved_zb",
] as const;
export const RECOMPUTE_WORDS = ["none", "selective", "full", "selective-where-needed", "full-where-needed"] as const;
export const OFFLOAD_WORDS = ["false", "true", "where-needed"] as const;
export const OPTIMIZERS = [
  "adam",
  "adam_bf16_states",
  "sgd",
  "muon",
  "adam_8bit",
  "adafactor",
  "adam_precision_aware",
  "lion",
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
export const TIME_TERM_WORDS = {
  compute: "compute",
  tp: "tensor parallel communication",
  cp: "context parallel communication",
  ep: "expert all-to-all",
  dp: "gradients and parameters (data parallel)",
  pp_bubble: "pipeline bubble",
  pp_send: "pipeline sends",
  optimizer: "optimizer step",
  recompute: "recompute",
  offload: "offload",
  host: "waiting for the host",
} as const;
export const MEMORY_TERM_NAMES = ["weights", "gradients", "optimizer", "activations", "buffers"] as const;
export const STRATEGY_FIELDS = {
  tp: { kind: "count", meaning: "tensor parallelism: ways in which each matmul is split" },
  sp: { kind: "switch", meaning: "sequence parallelism of norms and routing inside a tp group" },
  cp: { kind: "count", meaning: "context parallelism: ways in which the sequence is split" },
  cp_kind: { kind: "word", meaning: "how keys and values travel under cp: passed around a ring, or exchanged (Ulysses)" },
  ep: { kind: "count", meaning: "expert parallelism: ways in which the experts are dealt" },
  etp: { kind: "count", meaning: "tensor parallelism inside an expert" },
  pp: { kind: "count", meaning: "pipeline stages" },
  vpp: { kind: "count", meaning: "model chunks (virtual stages) a device" },
  dp: { kind: "count", meaning: "data parallelism, dp_replicate x dp_shard; derived" },
  dp_replicate: { kind: "count", meaning: "data-parallel replicas of the sharded group (HSDP)" },
  dp_shard: { kind: "count", meaning: "ranks over which ZeRO shards, besides cp" },
  micro_batch_size: { kind: "count", meaning: "samples of a micro-batch" },
  num_microbatches: { kind: "count", meaning: "micro-batches a step" },
  schedule: { kind: "word", meaning: "order of forward and backward work in the pipeline" },
  microbatch_group_size: { kind: "count", meaning: "interleaved only: micro-batches that a chunk runs before the next one; 0 = none" },
  zero_stage: { kind: "count", meaning: "0 replicated states, 1 optimizer sharded, 2 + gradients, 3 + parameters (FSDP)" },
  recompute: { kind: "word", meaning: "what the backward pass computes again, and in which layers (below)" },
  recompute_modules: { kind: "words", meaning: "selective only: which modules" },
  optimizer_offload: { kind: "switch", meaning: "optimizer states in host memory" },
  activation_offload: { kind: "switch", meaning: "kept activations in host memory; of which layers: below" },
  overlap_grad_reduce: { kind: "switch", meaning: "gradient reduction beside the backward pass" },
  overlap_param_gather: { kind: "switch", meaning: "parameter gathering beside the forward pass" },
  overlap_tp: { kind: "switch", meaning: "tp communication beside the matmul next to it" },
  overlap_ep: { kind: "switch", meaning: "expert exchange beside another micro-batch's compute" },
  dispatcher: { kind: "word", meaning: "how routed tokens reach their experts: once for each (alltoall), all to all ranks (allgather), or once a node and device (DeepEP, HybridEP)" },
  fp8_parameters: { kind: "switch", meaning: "weights of layers stored and gathered in 8 bit, with precision fp8" },
  axis_order: { kind: "word", meaning: "order of the axes over the ranks, innermost first" },
} as const;

export type Schedule = (typeof SCHEDULES)[number];
export type Launcher = (typeof LAUNCHERS)[number];
export type TimeTerm = keyof typeof TIME_TERM_WORDS;
export type MemoryTerm = (typeof MEMORY_TERM_NAMES)[number];
export type StrategyField = keyof typeof STRATEGY_FIELDS;
