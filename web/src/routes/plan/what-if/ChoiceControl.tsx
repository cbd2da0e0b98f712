import { useId } from "react";
import type { Finding } from "../../../api/problem";
import { FindingList } from "../../../components/Field";
import { Own } from "./DegreeControl";
import { CHOICES, LABELS, type SwitchName } from "./fields";
import styles from "./WhatIf.module.css";

interface Props {
  name: SwitchName;
  own: string;
  changed: boolean;
  value: string;
  onChange: (value: string) => void;
  findings: readonly Finding[];
}

const WORDS: Readonly<Record<string, string>> = { true: "on", false: "off" };
const shown = (value: string): string => WORDS[value] ?? value.replaceAll("_", " ");

/** One of a few words. */
export function ChoiceControl({ name, own, changed, value, onChange, findings }: Props) {
  const id = useId();
  const wrong = findings.length > 0;
  const choices = CHOICES[name].includes(value) ? CHOICES[name] : [value, ...CHOICES[name]];
  return (
    <div className={changed ? styles.changedChoice : styles.choice}>
      <label htmlFor={id}>
        {LABELS[name]} <Own shown={value !== own}>{shown(own)}</Own>
      </label>
      <select
        id={id}
        value={value}
        aria-invalid={wrong || undefined}
        aria-describedby={wrong ? `${id}-findings` : undefined}
        onChange={(event) => onChange(event.target.value)}
      >
        {choices.map((each) => (
          <option key={each} value={each}>
            {shown(each)}
          </option>
        ))}
      </select>
      <div className={styles.findings}>
        <FindingList id={`${id}-findings`} findings={findings} />
      </div>
    </div>
  );
}
