import type { ReactNode } from "react";
import type { Finding } from "../api/problem";
import { Field } from "./Field";

interface Common<T> {
  label: string;
  note?: ReactNode;
  value: T;
  onChange: (value: T) => void;
  findings?: readonly Finding[];
}

interface TextProps extends Common<string> {
  placeholder?: string;
  numeric?: boolean;
}

/** One line of text. */
export function TextField({ label, note, value, onChange, findings, placeholder, numeric }: TextProps) {
  return (
    <Field label={label} note={note} findings={findings}>
      {(control) => (
        <input
          {...control}
          value={value}
          placeholder={placeholder}
          inputMode={numeric ? "decimal" : undefined}
          spellCheck={false}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

interface ChoiceProps<T extends string> extends Common<T> {
  choices: readonly T[];
  names?: Partial<Record<T, string>>;
}

/** One of a few. */
export function ChoiceField<T extends string>({
  label,
  note,
  value,
  onChange,
  findings,
  choices,
  names,
}: ChoiceProps<T>) {
  return (
    <Field label={label} note={note} findings={findings}>
      {(control) => (
        <select
          {...control}
          value={value}
          onChange={(event) => onChange(choices.find((each) => each === event.target.value) ?? value)}
        >
          {choices.map((each) => (
            <option key={each} value={each}>
              {names?.[each] ?? each}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
