import type { PlanAnswer } from "../../../api/queries/plans";
import type { ScriptAnswer } from "../../../api/queries/scripts";
import { ScriptLists } from "../../../components/ScriptLists";
import { count, plural } from "../../../lib/format";
import styles from "./Alternatives.module.css";

interface Props {
  read: ScriptAnswer;
  plan: PlanAnswer;
}

/** What a script says, and where that is not what this plan answers. */
export function ScriptNotes({ read, plan }: Props) {
  const notes = scriptNotes(read, plan);
  const fields = Object.keys(read.strategy).length;
  return (
    <div className={styles.soft}>
      <p>
        Read as a Megatron-LM script: {plural(fields, "field")} of a strategy. Its run is predicted whole, on
        this plan's own question.
      </p>
      {notes.length > 0 && (
        <ul className={styles.notes}>
          {notes.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
      <ScriptLists read={{ ...read, held_to: [] }} />
    </div>
  );
}

/** Differences that make the script another question. */
export function scriptNotes(
  read: Pick<ScriptAnswer, "workload" | "devices">,
  plan: { readonly problem: Pick<PlanAnswer["problem"], "cluster" | "workload"> },
): readonly string[] {
  const workload = plan.problem.workload as unknown as Record<string, unknown>;
  const devices = plan.problem.cluster.pools.reduce(
    (sum, pool) => sum + pool.devices_per_node * pool.num_nodes,
    0,
  );
  const notes = Object.entries(read.workload)
    .filter(([field, value]) => field in workload && workload[field] !== value)
    .map(([field, value]) => `${field}: the script has ${value}, this plan ${workload[field]}`);
  if (read.devices != null && read.devices !== devices)
    notes.push(`devices: the script has ${count(read.devices)}, this plan ${count(devices)}`);
  return notes;
}
