import { type FormEvent, useEffect, useRef, useState } from "react";
import { ApiProblem, findingsAt } from "../../api/problem";
import { Button } from "../../components/Button";
import { TextField } from "../../components/ChoiceField";
import { Field } from "../../components/Field";
import { ProblemNotice } from "../../components/ProblemNotice";
import { ScriptLists } from "../../components/ScriptLists";
import { NOTHING_SAID, type SaidBeside } from "../../lib/launchScript";
import styles from "./NewPlan.module.css";
import type { ScriptState } from "./script";

interface Props {
  state: ScriptState;
  /** Holds the plan to the strategy of the script. */
  onPin: (pins: string) => void;
}

/** A launch script: what was read, what was not, and what a reader says beside it. */
export function ScriptPanel({ state, onPin }: Props) {
  const { shown, read, error } = state;
  const [beside, setBeside] = useState<SaidBeside>(shown?.beside ?? NOTHING_SAID);
  const heading = useRef<HTMLHeadingElement>(null);
  // It came because of a drop anywhere: readers of the page are taken to it.
  useEffect(() => heading.current?.focus(), []);
  if (!shown) return null;
  const findings = error instanceof ApiProblem ? (error.problem.errors ?? []) : [];
  const placed = {
    variables: findingsAt(findings, "/variables"),
    arguments: findingsAt(findings, "/arguments"),
    vocabulary: findingsAt(findings, "/vocab_size", "/text/--vocab-size"),
  };
  const elsewhere = Object.values(placed).flat();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    state.open({ ...shown, beside });
  };
  return (
    <form className={styles.topology} onSubmit={submit} aria-labelledby="script-heading">
      <h2 id="script-heading" ref={heading} tabIndex={-1}>
        Launch script {shown.name}
      </h2>
      <p>It is read as Megatron-LM, never run. Model, workload, devices and back-end are filled in below.</p>
      {read && (
        <>
          <p>
            Its strategy: <code>{read.facts.pins}</code>{" "}
            <Button onClick={() => onPin(read.facts.pins)}>Pin it</Button>
          </p>
          <ScriptLists read={read.facts} />
        </>
      )}
      {error && elsewhere.length < Math.max(findings.length, 1) && (
        <ProblemNotice error={error} shownElsewhere={elsewhere} />
      )}
      <div className={styles.three}>
        <Field label="Environment" note="VAR=VALUE, one a line" findings={placed.variables}>
          {(control) => (
            <textarea
              {...control}
              rows={2}
              spellCheck={false}
              value={beside.variables}
              onChange={(event) => setBeside({ ...beside, variables: event.target.value })}
            />
          )}
        </Field>
        <TextField
          label="Arguments of the script"
          value={beside.arguments}
          onChange={(words) => setBeside({ ...beside, arguments: words })}
          findings={placed.arguments}
        />
        <TextField
          label="Vocabulary size"
          note="Empty = as the script says"
          numeric
          value={beside.vocabulary}
          onChange={(vocabulary) => setBeside({ ...beside, vocabulary })}
          findings={placed.vocabulary}
        />
      </div>
      <div className={styles.files}>
        <Button type="submit" look="primary" disabled={state.isPending}>
          {state.isPending ? "Reading\u2026" : "Read again"}
        </Button>
        <Button onClick={state.leave}>Leave it</Button>
      </div>
    </form>
  );
}
