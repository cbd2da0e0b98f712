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
  /** Values that the service knows, with the words for them. */
  offers?: readonly { readonly value: string; readonly words: string }[];
}

const WORDS: Readonly<Record<string, string>> = { true: "on", false: "off" };
const shown = (value: string): string => WORDS[value] ?? value.replaceAll("_", " ");

/** One of a few words. */
export function ChoiceControl({ name, own, changed, value, onChange, findings, offers }: Props) {
  const id = useId();
  const wrong = findings.length > 0;
  const known = offers ?? CHOICES[name].map((each) => ({ value: each, words: shown(each) }));
  const missing = [value, own].filter((each) => !known.some((other) => other.value === each));
  const choices = [...[...new Set(missing)].map((each) => ({ value: each, words: shown(each) })), ...known];
  const words = (each: string) => choices.find((other) => other.value === each)?.words ?? shown(each);
  return (
    <div className={changed ? styles.changedChoice : styles.choice}>
      <label htmlFor={id}>
        {LABELS[name]} <Own shown={value !== own}>{words(own)}</Own>
      </label>
      <select
        id={id}
        value={value}
        aria-invalid={wrong || undefined}
        aria-describedby={wrong ? `${id}-findings` : undefined}
        onChange={(event) => onChange(event.target.value)}
      >
        {choices.map((each) => (
          <option key={each.value} value={each.value}>
            {each.words}
          </option>
        ))}
      </select>
      <div className={styles.findings}>
        <FindingList id={`${id}-findings`} findings={findings} />
      </div>
    </div>
  );
}
