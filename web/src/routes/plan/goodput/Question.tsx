import { type Finding, findingsAt } from "../../../api/problem";
import { TextField } from "../../../components/ChoiceField";
import styles from "./Goodput.module.css";
import type { Typed } from "./question";

interface Props {
  typed: Typed;
  findings: readonly Finding[];
  onChange: (part: Partial<Typed>) => void;
}

type TextName = Exclude<keyof Typed, "asynchronous">;

/** The fields: their name in the address, in the API, for people; what stands for an empty one. */
export const FIELDS: readonly (readonly [TextName, string, string, string])[] = [
  ["storage", "storage_bandwidth_bytes_per_s", "Storage, GB/s", "all nodes together, to write and to read"],
  ["repair", "repair_hours", "Hours of a repair", "empty: another node is always there"],
  ["spares", "spare_nodes", "Spare nodes", "empty: as many as pay"],
  ["restart", "restart_s", "Restart, s", "empty: 600 s to find the failure, and the reading"],
  ["rate", "failures_per_device_hour", "Failures of a device an hour", "empty: as in a published run"],
  ["tokens", "tokens", "Tokens to train", "such as 15e12: gives days and money"],
  ["price", "price_per_device_hour", "Price of a device hour", "empty: the plan's or the cluster's"],
];

/** What decides how much of the time the job trains. */
export function Question({ typed, findings, onChange }: Props) {
  return (
    <section aria-label="What decides the goodput" className={styles.fields}>
      {FIELDS.map(([name, pointer, label, note]) => (
        <TextField
          key={name}
          label={label}
          note={note}
          value={typed[name]}
          onChange={(value) => onChange({ [name]: value })}
          findings={findingsAt(findings, pointer)}
          numeric
        />
      ))}
      <label className={styles.check}>
        <input
          type="checkbox"
          checked={typed.asynchronous}
          onChange={(event) => onChange({ asynchronous: event.target.checked })}
        />
        Checkpoints are written beside training
      </label>
    </section>
  );
}
