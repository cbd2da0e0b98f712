/** How a model is trained, as three fields of the form: kind, loss, and the other options as text. */

import type { Schemas } from "../api/client";
import { typedNumber } from "./typed";

export const KINDS = ["pretrain", "full", "lora", "qlora"] as const;
export const TASKS = ["language_model", "dpo", "orpo", "reward"] as const;
export const KIND_NAMES = {
  pretrain: "Pre-training",
  full: "Full fine-tuning",
  lora: "LoRA",
  qlora: "QLoRA",
} as const;
export const TASK_NAMES = {
  language_model: "Next token",
  dpo: "DPO",
  orpo: "ORPO",
  reward: "Reward model",
} as const;
export type Training = Schemas["Training"];
export interface TypedTraining {
  readonly training: (typeof KINDS)[number];
  readonly task: (typeof TASKS)[number];
  readonly trainingOptions: string;
}

const SHOWN = ["rank", "targets", "dora", "ends", "base", "double_quantization", "reference"] as const;

/** The document that the fields mean; nothing where they say what is meant without any. */
export function trainingOf({
  training,
  task,
  trainingOptions,
}: TypedTraining): Record<string, unknown> | undefined {
  const options = Object.fromEntries(
    trainingOptions
      .split(/[\s;]+/)
      .filter(Boolean)
      .map((pair) => {
        const [name = "", value = ""] = pair.split("=");
        if (name === "targets" || name === "frozen_towers") return [name, value.replaceAll("+", ",")];
        return [
          name,
          value === "" || value === "true" ? true : value === "false" ? false : (typedNumber(value) ?? ""),
        ];
      }),
  );
  if (training === "pretrain" && task === "language_model" && Object.keys(options).length === 0)
    return undefined;
  return { kind: training, task, ...options };
}

/** The fields of a document. */
export function typedTraining(said: Training | null | undefined): Partial<TypedTraining> {
  if (!said) return {};
  const adapters = said.kind === "lora" || said.kind === "qlora";
  const frozen = (said as { readonly frozen_towers?: readonly string[] }).frozen_towers ?? [];
  const options = SHOWN.filter((name) =>
    adapters ? said[name] != null : name === "reference" && said[name] != null,
  )
    .map((name) => `${name}=${name === "targets" ? said.targets?.join("+") : String(said[name])}`)
    .concat(frozen.length > 0 ? [`frozen_towers=${frozen.join("+")}`] : [])
    .join(" ");
  return {
    training: KINDS.find((each) => each === said.kind),
    task: TASKS.find((each) => each === said.task),
    trainingOptions: options,
  };
}
