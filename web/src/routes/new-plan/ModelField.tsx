import { useQuery } from "@tanstack/react-query";
import type { Finding } from "../../api/problem";
import { type ModelRow, modelsQuery } from "../../api/queries/catalogue";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { FileButton } from "../../components/FileButton";
import { compact, count } from "../../lib/format";
import type { FileFieldsProps } from "./fields";
import styles from "./NewPlan.module.css";

/** Which model: one of the catalogue, a config.json, or that of a launch script. */
export function ModelField({ draft, documents, change, findings, openFiles }: FileFieldsProps) {
  const { data: models = [] } = useQuery(modelsQuery);
  const chosen = draft.modelFile ? undefined : models.find((each) => each.name === draft.model);
  return (
    <fieldset className={styles.group}>
      <legend>Model</legend>
      {draft.modelFile ? (
        <Field
          label="Model file"
          findings={missing(draft.modelFile, documents.model?.name) ?? findings.model}
        >
          {(control) => (
            <div className={styles.files}>
              <output {...control}>{draft.modelFile}</output>
              <Button onClick={() => change({ modelFile: "" })}>Use the catalogue</Button>
            </div>
          )}
        </Field>
      ) : (
        <Field label="Model" findings={findings.model}>
          {(control) => (
            <select
              {...control}
              value={draft.model}
              onChange={(event) => change({ model: event.target.value })}
            >
              {!chosen && <option value={draft.model}>{draft.model}</option>}
              <Options label="Yours" models={models.filter((each) => !each.builtin)} />
              <Options
                label="Dense"
                models={models.filter((each) => each.builtin && each.num_experts === 0)}
              />
              <Options
                label="Mixture of experts"
                models={models.filter((each) => each.builtin && each.num_experts > 0)}
              />
            </select>
          )}
        </Field>
      )}
      <div className={styles.files}>
        <FileButton label="Open config.json" accept=".json,application/json" onFiles={openFiles} />
        <FileButton
          label="Open a launch script"
          accept=".sh,.bash,.slurm,.sbatch,.args,.txt"
          onFiles={openFiles}
        />
      </div>
      {chosen && <Facts model={chosen} />}
    </fieldset>
  );
}

/** A link names a file that only its sender's browser has. */
export function missing(named: string, present: string | undefined): readonly Finding[] | undefined {
  if (named === present) return undefined;
  return [
    {
      pointer: "",
      detail: `${named} is not in this browser`,
      hint: "open the file here, or use the catalogue",
    },
  ];
}

function Options({ label, models }: { label: string; models: readonly ModelRow[] }) {
  if (models.length === 0) return null;
  return (
    <optgroup label={label}>
      {models.map((each) => (
        <option key={each.name} value={each.name}>
          {each.name}
        </option>
      ))}
    </optgroup>
  );
}

function Facts({ model }: { model: ModelRow }) {
  return (
    <dl className={styles.facts}>
      <dt>Parameters</dt>
      <dd>
        {compact(model.parameters)}
        {model.num_experts > 0 && `, ${compact(model.active_parameters)} active`}
      </dd>
      <dt>Layers</dt>
      <dd>
        {model.encoder_layers > 0 && `${count(model.encoder_layers)} + `}
        {count(model.num_layers - model.encoder_layers)} of width {count(model.hidden_size)}
      </dd>
      {model.num_experts > 0 && (
        <>
          <dt>Experts</dt>
          <dd>{count(model.num_experts)} a layer</dd>
        </>
      )}
      <dt>Longest sequence</dt>
      <dd>
        {model.max_sequence_length === null ? "no limit" : `${count(model.max_sequence_length)} tokens`}
      </dd>
    </dl>
  );
}
