import { Mark } from "../../../charts/tornado/Tornado";
import styles from "./Sensitivity.module.css";

const MARKS = [
  ["unasked", "fits"],
  ["stays", "stays best"],
  ["flips", "plan flips here"],
  ["unfit", "does not fit"],
] as const;

/** What bars and marks mean. */
export function MarkLegend() {
  return (
    <ul className={styles.legend}>
      <li>
        <i className={styles.faster} /> less time a token
      </li>
      <li>
        <i className={styles.slower} /> more time a token
      </li>
      {MARKS.map(([verdict, words]) => (
        <li key={verdict}>
          <svg width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">
            <Mark verdict={verdict} />
          </svg>
          {words}
        </li>
      ))}
    </ul>
  );
}
