import { useId } from "react";
import type { Finding } from "../../../api/problem";
import { FindingList } from "../../../components/Field";
import { type DegreeName, LABELS } from "./fields";
import styles from "./WhatIf.module.css";

interface Props {
  name: DegreeName;
  /** The plan's own value. */
  own: string;
  value: string;
  stops: readonly number[];
  onChange: (value: string) => void;
  findings: readonly Finding[];
}

/** A count: a slider over the values that divide, and a box for any other. */
export function DegreeControl({ name, own, value, stops, onChange, findings }: Props) {
  const id = useId();
  const at = stops.indexOf(Number(value));
  const wrong = findings.length > 0;
  return (
    <div className={value === own ? styles.control : styles.changed}>
      <label htmlFor={id}>
        {LABELS[name]} <Own shown={value !== own}>{own}</Own>
      </label>
      <input
        type="range"
        min={0}
        max={stops.length - 1}
        step={1}
        value={Math.max(0, at)}
        aria-label={`${LABELS[name]}, slider`}
        aria-valuetext={value}
        onChange={(event) => onChange(String(stops[Number(event.target.value)]))}
      />
      <input
        id={id}
        className={styles.number}
        inputMode="numeric"
        autoComplete="off"
        value={value}
        aria-invalid={wrong || undefined}
        aria-describedby={wrong ? `${id}-findings` : undefined}
        onChange={(event) => onChange(event.target.value.trim())}
      />
      <div className={styles.findings}>
        <FindingList id={`${id}-findings`} findings={findings} />
      </div>
    </div>
  );
}

/** What the plan itself has, beside a value that was changed. */
export function Own({ shown, children }: { shown: boolean; children: string }) {
  return shown ? <span className={styles.own}>plan {children}</span> : null;
}
