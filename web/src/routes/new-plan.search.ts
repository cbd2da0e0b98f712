import { ANY, backendOfOldAddress } from "../lib/backends";
import { oneOf, searchReader, text } from "../lib/search";
import { KINDS, TASKS } from "../lib/training";
import { OPTIMIZERS } from "../vocabulary";

export const PRECISIONS = ["bf16", "fp16", "fp8"] as const;
export { OPTIMIZERS } from "../vocabulary";
export const OBJECTIVES = ["step_time", "devices", "cost"] as const;
export const PREFERENCES = ["recommended", "fastest"] as const;

/** The question as it is typed: numbers stay the text that they are, so that nothing typed is lost. */
export const readNewPlanSearch = searchReader(
  {
    model: text("llama-3.1-70b"),
    /** Name of a dropped config.json; wins over `model`. */
    modelFile: text(),
    cluster: text("dgx-h100"),
    clusterFile: text(),
    devices: text("64"),
    batch: text("512"),
    seq: text("8192"),
    precision: oneOf(PRECISIONS, "bf16"),
    optimizer: oneOf(OPTIMIZERS, "adam"),
    training: oneOf(KINDS, "pretrain"),
    task: oneOf(TASKS, "language_model"),
    /** `rank=16 targets=q+v`: see the how-to page on fine-tuning. */
    trainingOptions: text(),
    /** `even`, `zipf:0.3` or JSON. */
    routing: text(),
    /** `packed,mean=640,packing=greedy`: see the how-to page on packed sequences. */
    sequences: text(),
    /** `gradient_dtype=bf16 images_per_sample=2`. */
    workloadMore: text(),
    objective: oneOf(OBJECTIVES, "step_time"),
    /** Among plans that the model cannot tell apart. */
    prefer: oneOf(PREFERENCES, "recommended"),
    price: text(),
    maxStep: text(),
    minRate: text(),
    /** `NAME` or `NAME==RELEASE`, commas between them; "" = all that train on the devices. */
    backend: text(),
    pins: text(),
    forbid: text(),
    margin: text(),
    /** Least chance to fit, percent. */
    fits: text(),
    /** Whose measurements: those of this service (auto), none, or a profile by its name or id. */
    profile: text("auto"),
    /** Id of one that the service keeps. */
    calibration: text(),
    limit: text(),
  },
  { names: ["target"], read: (raw) => ({ backend: oldTarget(raw) }) },
);

/** `target=any` said what nothing says now. */
function oldTarget(raw: Readonly<Record<string, unknown>>): unknown {
  const found = backendOfOldAddress({ target: raw.target });
  return found === ANY ? undefined : found;
}

export type Draft = ReturnType<typeof readNewPlanSearch.full>;
