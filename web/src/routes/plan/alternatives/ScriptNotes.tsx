import type { PlanAnswer } from "../../../api/queries/plans";
import type { ReadStrategy } from "../../../api/queries/variants";
import { count, plural } from "../../../lib/format";
import styles from "./Alternatives.module.css";

interface Props {
  read: ReadStrategy;
  plan: PlanAnswer;
}

/** What a script says beside its strategy, where it is not what this plan answers. */
export function ScriptNotes({ read, plan }: Props) {
  if (read.kind !== "megatron_script") return null;
  const notes = scriptNotes(read, plan);
  const fields = Object.keys(read.strategy).length;
  return (
    <div className={styles.soft}>
      <p>
        Read as a Megatron-LM script: {plural(fields, "field")} of a strategy. Everything else is asked of
        this plan's own question.
      </p>
      {notes.length > 0 && (
        <ul className={styles.notes}>
          {notes.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Differences that would make the script another question, and what of it was not used. */
export function scriptNotes(read: ReadStrategy, plan: PlanAnswer): readonly string[] {
  const { cluster, model } = plan.problem;
  const workload = plan.problem.workload as unknown as Record<string, unknown>;
  const devices = cluster.pools.reduce((sum, pool) => sum + pool.devices_per_node * pool.num_nodes, 0);
  const notes = Object.entries(read.workload ?? {})
    .filter(([field, value]) => field in workload && workload[field] !== value)
    .map(([field, value]) => `${field}: the script has ${value}, this plan ${workload[field]}`);
  if (read.num_devices != null && read.num_devices !== devices)
    notes.push(`devices: the script has ${count(read.num_devices)}, this plan ${count(devices)}`);
  if (read.model && read.model.hidden_size !== model.hidden_size)
    notes.push(
      `hidden size: the script has ${read.model.hidden_size}, this plan's model ${model.hidden_size}`,
    );
  if (read.skipped?.length)
    notes.push(`not used, for the script adds it on a condition: ${read.skipped.join(" ")}`);
  return notes;
}
