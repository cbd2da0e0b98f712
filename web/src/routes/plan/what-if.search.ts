import { searchReader, text } from "../../lib/search";

/** What is changed against the plan, as it is typed; empty = as the plan has it.  Names are those of the API. */
export const readWhatIfSearch = searchReader({
  tp: text(),
  pp: text(),
  cp: text(),
  ep: text(),
  vpp: text(),
  micro_batch_size: text(),
  schedule: text(),
  recompute: text(),
  zero_stage: text(),
  optimizer_offload: text(),
  activation_offload: text(),
  devices: text(),
  global_batch_size: text(),
  sequence_length: text(),
  precision: text(),
  optimizer: text(),
  /** By the names of the catalogue and of the back-ends. */
  cluster: text(),
  backend: text(),
  compute_rate: text(),
  scale_up_bandwidth: text(),
  nic_bandwidth: text(),
  memory_capacity: text(),
  /** The search that was asked for with these pins, and the plan that came of it. */
  job: text("", 80),
  solved: text("", 80),
});
