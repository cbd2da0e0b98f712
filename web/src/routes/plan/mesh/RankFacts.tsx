import type { MapAxis, MeshView } from "../../../api/queries/mesh";
import { count } from "../../../lib/format";
import { coordinatesOf, rangesOf } from "./axes";
import styles from "./Mesh.module.css";

interface Props {
  view: MeshView;
  axis: MapAxis;
  rank: number | undefined;
  members: readonly number[];
}

/** Where a rank stands, and who is in its group. */
export function RankFacts({ view, axis, rank, members }: Props) {
  if (rank === undefined) {
    return (
      <section className={styles.facts} aria-label="Rank">
        <p className={styles.soft}>Point at a rank, or walk with the arrow keys, to see its group.</p>
      </section>
    );
  }
  const node = Math.floor(rank / view.devices_per_node);
  return (
    <section className={styles.facts} aria-label="Rank">
      <h3>Rank {count(rank)}</h3>
      <dl>
        <dt>Runs on</dt>
        <dd>
          device {rank % view.devices_per_node} of node {count(node)}
          {view.scale_up_domain > view.devices_per_node &&
            `, scale-up domain ${count(Math.floor(rank / view.scale_up_domain))}`}
        </dd>
        <dt>Coordinates</dt>
        <dd className={styles.coordinates}>
          {coordinatesOf(view, rank).map((each) => (
            <span key={each.name}>
              <code>{each.name}</code> {each.at} <span className={styles.soft}>of {each.of}</span>
            </span>
          ))}
        </dd>
        <dt>Its {axis.axis} group</dt>
        <dd>{members.length > 1 ? `${count(members.length)} ranks: ${rangesOf(members)}` : "nobody else"}</dd>
      </dl>
    </section>
  );
}

/** The same in one sentence, to be read aloud. */
export function rankSentence(
  view: MeshView,
  axis: MapAxis,
  rank: number,
  members: readonly number[],
): string {
  const node = Math.floor(rank / view.devices_per_node);
  const coordinates = coordinatesOf(view, rank).map((each) => `${each.name} ${each.at} of ${each.of}`);
  return (
    `Rank ${rank}: device ${rank % view.devices_per_node} of node ${node}` +
    `${coordinates.length > 0 ? `; ${coordinates.join(", ")}` : ""}; ` +
    `its ${axis.axis} group is ${rangesOf(members, 4)}.`
  );
}
