import { useQuery } from "@tanstack/react-query";
import { profilesQuery } from "../../api/queries/hardware";
import { BackEndField } from "../../components/BackEndField";
import { ChoiceField, TextField } from "../../components/ChoiceField";
import { shortId } from "../../lib/format";
import { OBJECTIVES, PREFERENCES } from "../new-plan.search";
import type { FieldsProps } from "./fields";
import styles from "./NewPlan.module.css";

const OBJECTIVE_NAMES = {
  step_time: "Shortest step",
  devices: "Fewest devices",
  cost: "Lowest cost",
} as const;

const PREFERENCE_NAMES = {
  recommended: "Recommended",
  fastest: "Fastest on paper",
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
          label="Among plans that are about as fast"
          value={draft.prefer}
          choices={PREFERENCES}
          names={PREFERENCE_NAMES}
          onChange={(prefer) => change({ prefer })}
          findings={findings.prefer}
        />
        <TextField
          label="Price, $ a device-hour"
          numeric
          value={draft.price}
          onChange={(price) => change({ price })}
          findings={findings.price}
        />
      </div>
      <BackEndField
        value={draft.backend}
        onChange={(backend) => change({ backend })}
        findings={findings.backend}
      />
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
          label="Least chance to fit, %"
          placeholder="95"
          numeric
          value={draft.fits}
          onChange={(fits) => change({ fits })}
          findings={findings.fits}
        />
        <TextField
          label="Memory kept free, %"
          placeholder="as the chance asks"
          numeric
          value={draft.margin}
          onChange={(margin) => change({ margin })}
          findings={findings.margin}
        />
        <TextField
          label="Longest step, s"
          numeric
          value={draft.maxStep}
          onChange={(maxStep) => change({ maxStep })}
          findings={findings.maxStep}
        />
      </div>
      <div className={styles.pair}>
        <TextField
          label="Least tokens/s"
          numeric
          value={draft.minRate}
          onChange={(minRate) => change({ minRate })}
          findings={findings.minRate}
        />
        <TextField
          label="Search at most, s"
          note="Empty = until the plan is proved best"
          numeric
          value={draft.limit}
          onChange={(limit) => change({ limit })}
          findings={findings.limit}
        />
      </div>
      <div className={styles.pair}>
        <MeasurementField value={draft.profile} change={change} findings={findings} />
        <TextField
          label="Calibration"
          note="Id of one kept here; empty = none"
          value={draft.calibration}
          onChange={(calibration) => change({ calibration })}
          findings={findings.calibration}
        />
      </div>
    </fieldset>
  );
}

const SOURCES = { auto: "this service's", none: "datasheets only" } as const;

/** Whose measurements the numbers lean on. */
function MeasurementField({
  value,
  change,
  findings,
}: Pick<FieldsProps, "change" | "findings"> & { value: string }) {
  const { data: named = [] } = useQuery(profilesQuery);
  const known = [...Object.keys(SOURCES), ...named.map((each) => each.name)];
  const names: Record<string, string> = { [value]: shortId(value), ...SOURCES };
  return (
    <ChoiceField
      label="Measurements"
      value={value}
      choices={known.includes(value) ? known : [value, ...known]}
      names={names}
      onChange={(profile) => change({ profile })}
      findings={findings.profile}
    />
  );
}
