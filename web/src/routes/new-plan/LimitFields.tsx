import { ChoiceField, TextField } from "../../components/ChoiceField";
import { OBJECTIVES, TARGETS } from "../new-plan.search";
import type { FieldsProps } from "./fields";
import styles from "./NewPlan.module.css";

const OBJECTIVE_NAMES = {
  step_time: "Shortest step",
  devices: "Fewest devices",
  cost: "Lowest cost",
} as const;

/** What is best, and what the plan must respect. */
export function LimitFields({ draft, change, findings }: FieldsProps) {
  return (
    <fieldset className={styles.group}>
      <legend>Goal and limits</legend>
      <div className={styles.pair}>
        <ChoiceField
          label="Goal"
          value={draft.objective}
          choices={OBJECTIVES}
          names={OBJECTIVE_NAMES}
          onChange={(objective) => change({ objective })}
          findings={findings.objective}
        />
        <ChoiceField
          label="Software that runs it"
          value={draft.target}
          choices={TARGETS}
          onChange={(target) => change({ target })}
          findings={findings.target}
        />
      </div>
      <div className={styles.pair}>
        <TextField
          label="Pin"
          placeholder="tp=8 pp=4"
          value={draft.pins}
          onChange={(pins) => change({ pins })}
          findings={findings.pins}
        />
        <TextField
          label="Forbid"
          placeholder="cp recompute"
          value={draft.forbid}
          onChange={(forbid) => change({ forbid })}
          findings={findings.forbid}
        />
      </div>
      <div className={styles.pair}>
        <TextField
          label="Memory kept free, %"
          placeholder="6"
          numeric
          value={draft.margin}
          onChange={(margin) => change({ margin })}
          findings={findings.margin}
        />
        <TextField
          label="Price, $ a device-hour"
          numeric
          value={draft.price}
          onChange={(price) => change({ price })}
          findings={findings.price}
        />
      </div>
      <div className={styles.pair}>
        <TextField
          label="Longest step, s"
          numeric
          value={draft.maxStep}
          onChange={(maxStep) => change({ maxStep })}
          findings={findings.maxStep}
        />
        <TextField
          label="Least tokens/s"
          numeric
          value={draft.minRate}
          onChange={(minRate) => change({ minRate })}
          findings={findings.minRate}
        />
      </div>
      <TextField
        label="Calibration"
        note="Id of one that this service keeps, or its beginning; empty = none"
        value={draft.calibration}
        onChange={(calibration) => change({ calibration })}
        findings={findings.calibration}
      />
      <TextField
        label="Search at most, s"
        note="Empty = until the plan is proved best"
        numeric
        value={draft.limit}
        onChange={(limit) => change({ limit })}
        findings={findings.limit}
      />
    </fieldset>
  );
}
