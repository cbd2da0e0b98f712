import { Button } from "../../../components/Button";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { plural } from "../../../lib/format";
import { REACHES, type readSensitivitySearch } from "../sensitivity.search";
import styles from "./Sensitivity.module.css";
import type { Flips } from "./useFlips";

type Search = ReturnType<typeof readSensitivitySearch.full>;

interface Props {
  search: Search;
  changes: readonly number[];
  flips: Flips;
  onChange: (part: Partial<Search>) => void;
}

const written = (reach: string): string => `\u00b1 ${reach.replace(",", ", ")} %`;

/** By how much inputs are off, and whether the plan is searched again each time. */
export function FlipControls({ search, changes, flips, onChange }: Props) {
  const running = search.flips && flips.done < changes.length && !flips.error;
  const flipped = flips.points.filter((each) => each.stays_best === false).length;
  return (
    <div className={styles.controls}>
      <div className={styles.row}>
        <label>
          Inputs off by{" "}
          <select
            value={search.by}
            onChange={(event) => onChange({ by: event.target.value as Search["by"], flips: false })}
          >
            {REACHES.map((each) => (
              <option key={each} value={each}>
                {written(each)}
              </option>
            ))}
          </select>
        </label>
        {running ? (
          <Button
            onClick={() => {
              flips.stop();
              onChange({ flips: false });
            }}
          >
            Stop searching
          </Button>
        ) : (
          <Button
            look="primary"
            disabled={search.flips && !flips.error}
            onClick={() => onChange({ flips: true })}
          >
            Where does the plan flip?
          </Button>
        )}
        <span role="status" className={styles.progress}>
          {running &&
            `Searching again, one change after the other: ${flips.done} of ${changes.length} done. Each takes seconds.`}
          {search.flips &&
            flips.done === changes.length &&
            (flipped === 0
              ? `Searched again in ${plural(flips.points.length, "case")}: the plan stays best in all of them.`
              : `Searched again in ${plural(flips.points.length, "case")}: another plan is best in ${flipped}.`)}
          {!search.flips && "The whole search is run again under every change."}
        </span>
      </div>
      {running && <progress max={changes.length} value={flips.done} aria-label="Changes searched" />}
      {flips.error && <ProblemNotice error={flips.error} onRetry={flips.retry} />}
    </div>
  );
}
