import type { MapAxis, MeshView } from "../../../api/queries/mesh";
import { bandwidth, bytes, count, plain, seconds } from "../../../lib/format";
import { trafficOf } from "./axes";
import styles from "./Mesh.module.css";

/** What the groups of an axis send, over what, and what it costs. */
export function AxisFacts({ view, axis }: { view: MeshView; axis: MapAxis }) {
  const level = view.levels.find((each) => each.name === axis.level);
  const traffic = trafficOf(view, axis.axis);
  if (!level) return null;
  const stages = new Set(traffic.map((each) => each.stage));
  return (
    <section className={styles.facts} aria-label={`Axis ${axis.axis}`}>
      <dl>
        <dt>Slowest level</dt>
        <dd>
          {bandwidth(level.bandwidth_bytes_per_s)} a device, {seconds(level.latency_s, 2)} latency
        </dd>
        <dt>In one scale-up domain</dt>
        <dd>
          {count(axis.members_per_domain)} of {count(axis.group_size)} members
        </dd>
        <dt>Groups on each NIC</dt>
        <dd>{axis.groups_per_nic === 0 ? "none is needed" : plain(axis.groups_per_nic)}</dd>
        <dt>Costs</dt>
        <dd>
          {axis.seconds === null
            ? "counted with another axis"
            : `${seconds(axis.seconds)} that nothing hides`}
        </dd>
        {traffic.length > 0 && <dt>One rank sends</dt>}
        {traffic.map((each) => (
          <dd key={`${each.axis} ${each.operation}`}>
            {bytes(each.bytes_per_step)} by {each.operation.replaceAll("_", "-")}{" "}
            <span className={styles.soft}>
              in {count(each.calls_per_step)} {each.calls_per_step === 1 ? "call" : "calls"} a step
              {stages.size > 1 && `, on stage ${each.stage}`}
            </span>
          </dd>
        ))}
      </dl>
    </section>
  );
}
