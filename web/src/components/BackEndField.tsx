import { useQuery } from "@tanstack/react-query";
import type { Finding } from "../api/problem";
import { type BackEndRow, backendsQuery } from "../api/queries/catalogue";
import { ANY, namesIn, type Offer, offerOf, offersOf, textOf, UNRESTRICTED } from "../lib/backends";
import styles from "./BackEndField.module.css";
import { Button } from "./Button";
import { Field } from "./Field";

interface Props {
  /** As the draft keeps it: commas between names, "" = any. */
  value: string;
  onChange: (value: string) => void;
  findings?: readonly Finding[];
}

/** Which software may run the plan: all that train on the devices, some of them, or none for study. */
export function BackEndField({ value, onChange, findings }: Props) {
  const { data = [] } = useQuery(backendsQuery);
  const offers = offersOf(data);
  const [first = ANY, ...more] = namesIn(value);
  const write = (names: readonly string[]) => onChange(textOf(names));
  const alone = first === ANY || first === UNRESTRICTED;
  const known = alone || offerOf(offers, first) !== undefined;
  return (
    <div className={styles.field}>
      <Field label="Back-end" note={noteOf(first, offers)} findings={findings}>
        {(control) => (
          <select
            {...control}
            value={offerOf(offers, first)?.value ?? first}
            onChange={({ target: { value: name } }) =>
              write(name === ANY || name === UNRESTRICTED ? [name] : [name, ...more])
            }
          >
            <option value={ANY}>All that train on these devices</option>
            {!known && <option value={first}>{first}</option>}
            <Offers offers={offers} taken={more} />
            <option value={UNRESTRICTED}>Unrestricted, for study</option>
          </select>
        )}
      </Field>
      {!alone && (
        <ul className={styles.more}>
          {more.map((name) => (
            <li key={name}>
              {offerOf(offers, name)?.words ?? name}
              <Button
                look="quiet"
                aria-label={`Leave out ${offerOf(offers, name)?.words ?? name}`}
                onClick={() => write([first, ...more.filter((each) => each !== name)])}
              >
                ×
              </Button>
            </li>
          ))}
          <li>
            <select
              value=""
              aria-label="Another back-end"
              onChange={(event) => write([first, ...more, event.target.value])}
            >
              <option value="">or another…</option>
              <Offers offers={offers} taken={[first, ...more]} />
            </select>
          </li>
        </ul>
      )}
    </div>
  );
}

/** Those that files can be written for first; the others can only be predicted. */
function Offers({ offers, taken }: { offers: readonly Offer<BackEndRow>[]; taken: readonly string[] }) {
  const held = new Set(taken.map((name) => offerOf(offers, name)?.value ?? name));
  const free = offers.filter((each) => !held.has(each.value));
  const options = (writes: boolean) =>
    free
      .filter((each) => each.writesFiles === writes)
      .map((each) => (
        <option key={each.value} value={each.value}>
          {each.words}
        </option>
      ));
  return (
    <>
      <optgroup label="With launch files">{options(true)}</optgroup>
      <optgroup label="Predicted only">{options(false)}</optgroup>
    </>
  );
}

function noteOf(name: string, offers: readonly Offer<BackEndRow>[]): string {
  if (name === ANY) return "The fastest of them is the plan";
  if (name === UNRESTRICTED) return "No software's rules: no files can be written";
  return offerOf(offers, name)?.backend.summary.replaceAll("``", "") ?? "";
}
