import type { ReactNode } from "react";
import type { Finding } from "../api/problem";
import { Field } from "./Field";

interface Props {
  label: string;
  note?: ReactNode;
  /** What the empty choice is called. */
  none: string;
  names: readonly string[];
  value: string;
  onChange: (value: string) => void;
  findings?: readonly Finding[];
}

/** One of the names that the service knows, or none. */
export function NameField({ label, note, none, names, value, onChange, findings }: Props) {
  return (
    <Field label={label} note={note} findings={findings}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">{none}</option>
          {/* A name from an address that the service does not list stays what it is. */}
          {value !== "" && !names.includes(value) && <option value={value}>{value}</option>}
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
