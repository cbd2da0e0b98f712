/** What can be changed, and which values does a slider stop at?  Every other value can be typed: the API judges it. */

import type { PlanAnswer } from "../../../api/queries/plans";
import { ownBackend } from "../../../lib/backends";
import { RELIEF_FIELDS, reliefWord } from "../../../lib/relief";
import {
  OFFLOAD_WORDS,
  OPTIMIZERS,
  RECOMPUTE_WORDS,
  SCHEDULES,
  type StrategyField,
} from "../../../vocabulary";
import { PRECISIONS } from "../../new-plan.search";
import { readWhatIfSearch } from "../what-if.search";

const { job: _job, solved: _solved, ...nothing } = readWhatIfSearch.full({});
/** Everything as the plan has it. */
export const NOTHING: typeof nothing = nothing;
export type Chosen = typeof nothing;
export type FieldName = keyof Chosen;

export const DEGREES = ["tp", "pp", "cp", "ep", "vpp", "micro_batch_size", "devices"] as const;
export const SWITCHES = [
  "schedule",
  "recompute",
  "zero_stage",
  "optimizer_offload",
  "activation_offload",
] as const;
/** Of what is trained and where, not of the strategy. */
export const SIZES = ["global_batch_size", "sequence_length"] as const;
export const QUESTION_CHOICES = ["precision", "optimizer", "cluster", "backend"] as const;
export const LEVERS = ["compute_rate", "scale_up_bandwidth", "nic_bandwidth", "memory_capacity"] as const;
export type DegreeName = (typeof DEGREES)[number] | (typeof SIZES)[number];
export type SwitchName = (typeof SWITCHES)[number] | (typeof QUESTION_CHOICES)[number];
export type LeverName = (typeof LEVERS)[number];
/** All but devices and levers, which are of the machine, and what is trained. */
export const STRATEGY_FIELDS = [
  ...DEGREES.filter((each): each is Exclude<(typeof DEGREES)[number], "devices"> => each !== "devices"),
  ...SWITCHES,
] as const satisfies readonly StrategyField[];

export const LABELS: Readonly<Record<FieldName, string>> = {
  tp: "Tensor parallel",
  pp: "Pipeline stages",
  cp: "Context parallel",
  ep: "Expert parallel",
  vpp: "Chunks a stage",
  micro_batch_size: "Micro-batch",
  devices: "Devices",
  global_batch_size: "Global batch size",
  sequence_length: "Sequence length",
  precision: "Precision",
  optimizer: "Optimizer",
  cluster: "Cluster",
  backend: "Back-end",
  schedule: "Schedule",
  recompute: "Recompute",
  zero_stage: "ZeRO stage",
  optimizer_offload: "Optimizer offload",
  activation_offload: "Activation offload",
  compute_rate: "Compute rate",
  scale_up_bandwidth: "Scale-up bandwidth",
  nic_bandwidth: "NIC bandwidth",
  memory_capacity: "Memory capacity",
};

export const CHOICES: Readonly<Record<SwitchName, readonly string[]>> = {
  schedule: SCHEDULES,
  recompute: RECOMPUTE_WORDS,
  zero_stage: ["0", "1", "2", "3"],
  optimizer_offload: ["false", "true"],
  activation_offload: OFFLOAD_WORDS,
  precision: PRECISIONS,
  optimizer: OPTIMIZERS,
  // What the service knows comes beside them.
  cluster: [],
  backend: [],
};

/** Factors that a slider offers on an input. */
export const FACTORS = { low: 0.5, high: 2, step: 0.05 };
const MOST_STOPS = 64;

export function devicesOf(plan: PlanAnswer): number {
  return plan.problem.cluster.pools.reduce((sum, pool) => sum + pool.devices_per_node * pool.num_nodes, 0);
}

/** What the plan has there, as text. */
export function planValue(plan: PlanAnswer, name: FieldName): string {
  const { workload, cluster } = plan.problem;
  if (name === "devices") return String(devicesOf(plan));
  if (name === "cluster") return cluster.name;
  if (name === "backend") return ownBackend(plan);
  if (name === "global_batch_size" || name === "sequence_length") return String(workload[name]);
  if (name === "precision" || name === "optimizer") return String(workload[name]);
  if ((LEVERS as readonly string[]).includes(name)) return "1";
  const value = (plan.strategy as Record<string, string | number | boolean>)[name];
  const relief = RELIEF_FIELDS.find((field) => field === name);
  return String(relief === undefined || value === undefined ? value : reliefWord(plan, relief, value));
}

function divisors(value: number, most: number): readonly number[] {
  const found: number[] = [];
  for (let each = 1; each <= Math.min(value, most); each++) if (value % each === 0) found.push(each);
  return found;
}

/** Halves and doubles that are whole. */
const doubles = (value: number, least: number): readonly number[] =>
  [-3, -2, -1, 0, 1, 2, 3]
    .map((by) => value * 2 ** by)
    .filter((each) => each >= least && Number.isInteger(each));

/** Where the slider of a degree stops; the value that it stands at is always among them. */
export function stopsOf(plan: PlanAnswer, name: DegreeName, now: number): readonly number[] {
  const devices = devicesOf(plan);
  const pool = plan.problem.cluster.pools[0];
  const node = pool?.devices_per_node ?? 1;
  const stops: Record<DegreeName, () => readonly number[]> = {
    tp: () => divisors(devices, MOST_STOPS),
    pp: () => divisors(devices, MOST_STOPS),
    cp: () => divisors(devices, MOST_STOPS),
    ep: () => divisors(devices, MOST_STOPS),
    vpp: () => Array.from({ length: 16 }, (_, at) => at + 1),
    micro_batch_size: () => divisors(plan.problem.workload.global_batch_size, 32),
    // Halves and doubles, down to one node.
    global_batch_size: () => doubles(plan.problem.workload.global_batch_size, 1),
    sequence_length: () => doubles(plan.problem.workload.sequence_length, 256),
    devices: () => [-3, -2, -1, 0, 1, 2, 3].map((by) => devices * 2 ** by).filter((each) => each >= node),
  };
  const found = stops[name]();
  return found.includes(now) || !Number.isFinite(now) ? found : [...found, now].sort((a, b) => a - b);
}
