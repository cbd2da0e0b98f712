import type { MapAxis } from "../../../api/queries/mesh";
import { count } from "../../../lib/format";
import styles from "./Mesh.module.css";

const COLOURS = ["0", "1", "2", "3", "4", "5", "6", "7"] as const;

/** Which colour is which coordinate. */
export function AxisLegend({ axis }: { axis: MapAxis }) {
  const size = axis.group_size;
  return (
    <ul className={styles.legend} aria-label={`Colours of ${axis.axis}`}>
      {COLOURS.slice(0, size).map((index) => (
        <li key={index}>
          <i style={{ background: `var(--series-${Number(index) + 1})` }}>{index}</i>
        </li>
      ))}
      <li>
        {axis.axis} coordinate
        {size > COLOURS.length &&
          `, 0 to ${count(size - 1)}: colours come again after ${COLOURS.length}, with one more stroke each time`}
      </li>
    </ul>
  );
}
