import { ChoiceField, TextField } from "../../components/ChoiceField";
import { KIND_NAMES, KINDS, TASK_NAMES, TASKS } from "../../lib/training";
import { OPTIMIZERS, PRECISIONS } from "../new-plan.search";
import type { FieldsProps } from "./fields";
import styles from "./NewPlan.module.css";

/** What one optimizer step does. */
export function WorkloadFields({ draft, change, findings }: FieldsProps) {
  return (
    <fieldset className={styles.group}>
      <legend>Workload</legend>
      <div className={styles.pair}>
        <TextField
          label="Global batch size"
          note="samples a step"
          numeric
          value={draft.batch}
          onChange={(batch) => change({ batch })}
          findings={findings.batch}
        />
        <TextField
          label="Sequence length"
          note="tokens a sample"
          numeric
          value={draft.seq}
          onChange={(seq) => change({ seq })}
          findings={findings.seq}
        />
      </div>
      <div className={styles.pair}>
        <ChoiceField
          label="Precision"
          value={draft.precision}
          choices={PRECISIONS}
          onChange={(precision) => change({ precision })}
          findings={findings.precision}
        />
        <ChoiceField
          label="Optimizer"
          value={draft.optimizer}
          choices={OPTIMIZERS}
          onChange={(optimizer) => change({ optimizer })}
          findings={findings.optimizer}
        />
      </div>
      <div className={styles.pair}>
        <ChoiceField
          label="Training"
          value={draft.training}
          choices={KINDS}
          names={KIND_NAMES}
          onChange={(training) => change({ training })}
          findings={findings.training}
        />
        <ChoiceField
          label="Loss"
          value={draft.task}
          choices={TASKS}
          names={TASK_NAMES}
          onChange={(task) => change({ task })}
          findings={findings.task}
        />
      </div>
      {(draft.training === "lora" ||
        draft.training === "qlora" ||
        draft.task === "dpo" ||
        draft.trainingOptions) && (
        <TextField
          label="Training options"
          note="rank=16 targets=q+k+v+o dora base=nf4 reference=shared"
          value={draft.trainingOptions}
          onChange={(trainingOptions) => change({ trainingOptions })}
          findings={findings.trainingOptions}
        />
      )}
      <TextField
        label="Documents"
        note="how long they are and how they fill sequences; empty = each is a whole sequence"
        placeholder="packed,mean=640,packing=greedy"
        value={draft.sequences}
        onChange={(sequences) => change({ sequences })}
        findings={findings.sequences}
      />
      <div className={styles.pair}>
        <TextField
          label="Routing of experts"
          note="empty = as published logs show"
          placeholder="even, zipf:0.3"
          value={draft.routing}
          onChange={(routing) => change({ routing })}
          findings={findings.routing}
        />
        <TextField
          label="More of the workload"
          placeholder="gradient_dtype=bf16 images_per_sample=2"
          value={draft.workloadMore}
          onChange={(workloadMore) => change({ workloadMore })}
          findings={findings.workloadMore}
        />
      </div>
    </fieldset>
  );
}
