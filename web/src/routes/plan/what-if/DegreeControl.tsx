import { useId, useState } from "react";
import type { Finding } from "../../../api/problem";
import { FindingList } from "../../../components/Field";
import { type DegreeName, LABELS } from "./fields";
import styles from "./WhatIf.module.css";

interface Props {
  name: DegreeName;
  /** The plan's own value. */
  own: string;
  changed: boolean;
  value: string;
  stops: readonly number[];
  onChange: (value: string) => void;
  findings: readonly Finding[];
}

/** A count: a slider over the values that divide, and a box for any other. */
export function DegreeControl({ name, own, changed, value, stops, onChange, findings }: Props) {
  const id = useId();
  // While the box is empty nothing is chosen yet: the last value stays until another is there.
  const [empty, setEmpty] = useState(false);
  const at = stops.indexOf(Number(value));
  const wrong = findings.length > 0;
  return (
    <div className={changed ? styles.changed : styles.control}>
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
        value={empty ? "" : value}
        aria-invalid={wrong || undefined}
        aria-describedby={wrong ? `${id}-findings` : undefined}
        onBlur={() => setEmpty(false)}
        onChange={(event) => {
          const text = event.target.value.trim();
          setEmpty(text === "");
          if (text !== "") onChange(text);
        }}
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
