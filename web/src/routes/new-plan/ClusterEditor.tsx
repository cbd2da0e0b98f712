import { useState } from "react";
import { type Finding, findingsAt } from "../../api/problem";
import { TextField } from "../../components/ChoiceField";
import { Field, FindingList } from "../../components/Field";
import { figuresOf, pointerOf, typedValue, withValue } from "./figures";
import styles from "./NewPlan.module.css";

interface Props {
  content: Record<string, unknown>;
  onChange: (content: Record<string, unknown>) => void;
  /** What the API says about the cluster, with pointers into it. */
  findings: readonly Finding[];
}

/** A cluster as its figures, and below them as the whole document. */
export function ClusterEditor({ content, onChange, findings }: Props) {
  const figures = figuresOf(content);
  const beside = figures.flatMap((each) => findingsAt(findings, pointerOf(each.path)));
  return (
    <div className={styles.editor}>
      <div className={styles.pair}>
        {figures.map((each) => (
          <TextField
            key={pointerOf(each.path)}
            label={each.label}
            value={each.text}
            onChange={(text) => onChange(withValue(content, each.path, typedValue(text)))}
            findings={findingsAt(findings, pointerOf(each.path))}
          />
        ))}
      </div>
      <FindingList findings={findings.filter((each) => !beside.includes(each))} pointers />
      <details>
        <summary>The whole document</summary>
        <DocumentText content={content} onChange={onChange} />
      </details>
    </div>
  );
}

/** The document as text; while the text is no JSON, the last document that was stays in force. */
function DocumentText({ content, onChange }: Pick<Props, "content" | "onChange">) {
  const written = JSON.stringify(content, null, 2);
  const [draft, setDraft] = useState<{ text: string; of: string; fault: string } | undefined>();
  // A change of the figures replaces the text, unless it is being written.
  const current =
    draft && (draft.fault !== "" || draft.of === written) ? draft : { text: written, of: written, fault: "" };
  const type = (text: string) => {
    try {
      const parsed = JSON.parse(text) as Record<string, unknown>;
      setDraft({ text, of: JSON.stringify(parsed, null, 2), fault: "" });
      onChange(parsed);
    } catch (error) {
      setDraft({ text, of: written, fault: (error as Error).message });
    }
  };
  const faults = current.fault
    ? [{ pointer: "", detail: `no JSON yet: ${current.fault}`, hint: "the plan uses the last good text" }]
    : [];
  return (
    <Field label="Cluster document (JSON)" findings={faults}>
      {(control) => (
        <textarea
          {...control}
          rows={16}
          spellCheck={false}
          value={current.text}
          onChange={(event) => type(event.target.value)}
        />
      )}
    </Field>
  );
}
