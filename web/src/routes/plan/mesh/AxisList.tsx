import type { MeshView } from "../../../api/queries/mesh";
import { count, seconds } from "../../../lib/format";
import { titleOf } from "./axes";
import styles from "./Mesh.module.css";

interface Props {
  view: MeshView;
  chosen: string;
  onChoose: (axis: string) => void;
}

/** Every axis with its groups, the slowest level that they cross, and what it costs; one is drawn. */
export function AxisList({ view, chosen, onChoose }: Props) {
  return (
    <fieldset className={styles.axes}>
      <legend>Colour by axis</legend>
      {view.axes.map((each) => (
        <label key={each.axis} className={each.group_size > 1 ? styles.axis : styles.single}>
          <input
            type="radio"
            name="axis"
            value={each.axis}
            checked={each.axis === chosen}
            onChange={() => onChoose(each.axis)}
          />
          <span className={styles.axisName}>
            {titleOf(each.axis)} <code>{each.axis}</code>
          </span>
          <span className={styles.groups}>
            {each.group_size > 1 ? `${count(each.num_groups)} × ${count(each.group_size)}` : "1"}
          </span>
          <LevelTag level={each.level} />
          <span className={styles.seconds}>{each.group_size > 1 && seconds(each.seconds, 3)}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** Inside a scale-up domain: a full mark; over the fabric: an open one. */
export function LevelTag({ level }: { level: string | null }) {
  if (level === null) return <span className={styles.level} />;
  const inside = level === "scale_up";
  return (
    <span className={inside ? styles.inside : styles.level}>
      <i aria-hidden="true">{inside ? "\u25cf" : "\u25b3"}</i> {level.replaceAll("_", "-")}
    </span>
  );
}
