import { type ReactNode, useId } from "react";
import type { Finding } from "../api/problem";
import styles from "./Field.module.css";

/** What the control of a field must carry. */
export interface ControlProps {
  id: string;
  "aria-invalid": boolean | undefined;
  "aria-describedby": string | undefined;
}

interface Props {
  label: string;
  note?: ReactNode;
  /** What the API says about this part of the question. */
  findings?: readonly Finding[];
  children: (control: ControlProps) => ReactNode;
}

/** A control with its name, and beside it what is wrong with it and what repairs that. */
export function Field({ label, note, findings = [], children }: Props) {
  const id = useId();
  const wrong = findings.length > 0;
  const describes = [note ? `${id}-note` : "", wrong ? `${id}-findings` : ""].filter(Boolean).join(" ");
  return (
    <div className={styles.field}>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      {children({ id, "aria-invalid": wrong || undefined, "aria-describedby": describes || undefined })}
      {note && (
        <div className={styles.note} id={`${id}-note`}>
          {note}
        </div>
      )}
      <FindingList id={`${id}-findings`} findings={findings} />
    </div>
  );
}

interface FindingListProps {
  id?: string;
  findings: readonly Finding[];
  /** Say where each is: for findings that stand beside no field. */
  pointers?: boolean;
}

/** Findings as lines: what, then what repairs it. */
export function FindingList({ id, findings, pointers }: FindingListProps) {
  return (
    <div id={id} className={styles.findings} aria-live="polite">
      {findings.map((each) => (
        <p key={`${each.pointer} ${each.detail}`} className={styles.finding}>
          {pointers && each.pointer && <code>{each.pointer} </code>}
          {each.detail}
          {each.hint && (
            <span className={styles.hint}>
              {" "}
              {"\u2014"} {each.hint}
            </span>
          )}
        </p>
      ))}
    </div>
  );
}
