import type { Finding } from "../../../api/problem";
import type { PlanAnswer } from "../../../api/queries/plans";
import { ChoiceControl } from "./ChoiceControl";
import { DegreeControl } from "./DegreeControl";
import { type Chosen, DEGREES, type FieldName, LEVERS, planValue, stopsOf } from "./fields";
import { LeverControl } from "./LeverControl";
import styles from "./WhatIf.module.css";

interface Props {
  plan: PlanAnswer;
  chosen: Chosen;
  change: (name: FieldName, value: string) => void;
  findings: Readonly<Partial<Record<FieldName, readonly Finding[]>>>;
}

const SWITCHES_OF_STRATEGY = ["schedule", "recompute", "zero_stage"] as const;
const OFFLOADS = ["optimizer_offload", "activation_offload"] as const;

/** Every choice of the plan that can be turned, and the figures of the machine. */
export function Controls({ plan, chosen, change, findings }: Props) {
  const experts = (plan.problem.model as { has_experts?: boolean; num_experts?: number | null }).num_experts;
  const degrees = DEGREES.filter((name) => name !== "ep" || (experts ?? 0) > 1 || chosen.ep !== "");
  const set = (name: FieldName) => (value: string) =>
    change(name, value === planValue(plan, name) ? "" : value);
  return (
    <>
      <fieldset className={styles.group}>
        <legend>Degrees</legend>
        {degrees.map((name) => {
          const own = planValue(plan, name);
          const value = chosen[name] || own;
          return (
            <DegreeControl
              key={name}
              name={name}
              own={own}
              value={value}
              stops={stopsOf(plan, name, Number(value))}
              onChange={set(name)}
              findings={findings[name] ?? []}
            />
          );
        })}
      </fieldset>
      <fieldset className={styles.group}>
        <legend>Schedule and memory</legend>
        {[...SWITCHES_OF_STRATEGY, ...OFFLOADS].map((name) => (
          <ChoiceControl
            key={name}
            name={name}
            own={planValue(plan, name)}
            value={chosen[name] || planValue(plan, name)}
            onChange={set(name)}
            findings={findings[name] ?? []}
          />
        ))}
      </fieldset>
      <fieldset className={styles.group}>
        <legend>If the machine were</legend>
        {LEVERS.map((name) => (
          <LeverControl
            key={name}
            name={name}
            value={chosen[name] || "1"}
            onChange={set(name)}
            findings={findings[name] ?? []}
          />
        ))}
      </fieldset>
    </>
  );
}
