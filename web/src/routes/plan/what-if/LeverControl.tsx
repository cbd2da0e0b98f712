import { useId } from "react";
import type { Finding } from "../../../api/problem";
import { FindingList } from "../../../components/Field";
import { times } from "../../../lib/format";
import { FACTORS, LABELS, type LeverName } from "./fields";
import styles from "./WhatIf.module.css";

interface Props {
  name: LeverName;
  value: string;
  onChange: (value: string) => void;
  findings: readonly Finding[];
}

/** A factor on a figure of the machine. */
export function LeverControl({ name, value, onChange, findings }: Props) {
  const id = useId();
  return (
    <div className={value === "1" ? styles.control : styles.changed}>
      <label htmlFor={id}>{LABELS[name]}</label>
      <input
        id={id}
        type="range"
        min={FACTORS.low}
        max={FACTORS.high}
        step={FACTORS.step}
        value={value}
        aria-valuetext={times(Number(value))}
        onChange={(event) => onChange(String(Number(event.target.value)))}
      />
      <output className={styles.factor}>{times(Number(value))}</output>
      <div className={styles.findings}>
        <FindingList findings={findings} />
      </div>
    </div>
  );
}
