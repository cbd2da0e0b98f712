import { Link } from "@tanstack/react-router";
import type { Fleet, JobAllocation, PoolUse } from "../../api/queries/fleets";
import { type Column, DataTable } from "../../components/DataTable";
import { compact, count, NONE, percent, plain, plural, seconds, shortId } from "../../lib/format";
import styles from "./Fleet.module.css";
import { LaunchFiles } from "./LaunchFiles";
import { NodeMap } from "./NodeMap";

/** Six digits that matter: as the command writes an objective. */
const figure = (value: number): string => String(Number(value.toPrecision(6)));

/** Who gets what, how good that is, and what more would be worth. */
export function Answer({ fleet }: { fleet: Fleet }) {
  const running = fleet.jobs.filter((job) => job.pool != null);
  const told = fleet.jobs.filter((job) => job.why != null);
  return (
    <>
      <NodeMap fleet={fleet} />
      <section>
        <h2>Jobs</h2>
        <DataTable
          caption="What each job gets"
          captionHidden
          columns={JOBS}
          rows={running}
          rowKey={(job) => job.name}
        />
      </section>
      {told.length > 0 && (
        <section>
          <h2>Who waits or moves</h2>
          <ul className={styles.list}>
            {told.map((job) => (
              <li key={job.name}>
                <strong>{job.name}</strong> {job.change}: {job.why}
                {job.change === "moves" && `, ${seconds(job.lost_s)} lost`}
              </li>
            ))}
          </ul>
        </section>
      )}
      <div className={styles.tables}>
        <Goals fleet={fleet} />
        <Pools pools={fleet.pools} />
      </div>
      <LaunchFiles jobs={running} />
      <section>
        <h2>Assumed</h2>
        <ul className={styles.assumptions}>
          {fleet.assumptions.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      </section>
    </>
  );
}

const JOBS: readonly Column<JobAllocation>[] = [
  { name: "job", title: "Job", cell: (job) => job.name },
  { name: "change", title: "Change", cell: (job) => job.change },
  { name: "pool", title: "Pool", cell: (job) => job.pool },
  { name: "devices", title: "Devices", number: true, cell: (job) => count(job.devices) },
  { name: "step", title: "Step", number: true, cell: (job) => seconds(job.step_time_s) },
  { name: "tokens", title: "Tokens/s", number: true, cell: (job) => compact(job.tokens_per_s) },
  {
    name: "relative",
    title: "Of its most",
    number: true,
    cell: (job) => percent(job.relative_speed),
  },
  {
    name: "more",
    title: "One node more, tokens/s",
    number: true,
    cell: ({ larger }) =>
      larger == null
        ? NONE
        : `+${compact(larger.gain_tokens_per_s_per_node)} (of ${plural(larger.more_nodes, "node")})`,
  },
  {
    name: "deadline",
    title: "Deadline",
    cell: (job) => (job.keeps_deadline == null ? NONE : job.keeps_deadline ? "kept" : "missed"),
  },
  { name: "backend", title: "Back-end", cell: (job) => job.backend },
  {
    name: "plan",
    title: "Plan",
    cell: (job) =>
      job.plan_id && (
        <Link to="/plans/$planId" params={{ planId: job.plan_id }}>
          <code>{shortId(job.plan_id)}</code>
        </Link>
      ),
  },
];

function Goals({ fleet }: { fleet: Fleet }) {
  return (
    <section>
      <h2>How good it is</h2>
      <DataTable
        caption="Objectives, the most important first"
        captionHidden
        columns={[
          { name: "name", title: "Objective", cell: (goal) => goal.name },
          { name: "value", title: "Reached", number: true, cell: (goal) => figure(goal.value) },
          { name: "bound", title: "At most", number: true, cell: (goal) => figure(goal.bound) },
          {
            name: "gap",
            title: "Gap",
            number: true,
            cell: (goal) => (goal.proved ? "proved" : percent(goal.gap, 2)),
          },
        ]}
        rows={fleet.goals}
        rowKey={(goal) => goal.name}
      />
      <p className={styles.note}>
        {plural(fleet.blocks_touched, "block")} touched, at least {count(fleet.blocks_bound)}.
        {fleet.undecided > 0 &&
          ` ${plural(fleet.undecided, "size")} of jobs not decided: a longer budget_s in the file decides more.`}
      </p>
    </section>
  );
}

function Pools({ pools }: { pools: readonly PoolUse[] }) {
  return (
    <section>
      <h2>Pools</h2>
      <DataTable
        caption="What is left of each pool, and what one node more is worth"
        captionHidden
        columns={[
          { name: "name", title: "Pool", cell: (pool) => pool.name },
          { name: "nodes", title: "Nodes", number: true, cell: (pool) => count(pool.nodes) },
          { name: "given", title: "Given", number: true, cell: (pool) => count(pool.given) },
          { name: "left", title: "Left", number: true, cell: (pool) => count(pool.free?.length ?? 0) },
          {
            name: "more",
            title: "One node more is worth",
            cell: ({ one_node_more }) => worth(one_node_more),
          },
        ]}
        rows={pools}
        rowKey={(pool) => pool.name}
      />
    </section>
  );
}

function worth(gain: PoolUse["one_node_more"]): string {
  if (gain == null) return "not known";
  return gain.goal == null ? "nothing" : `${plain(gain.gain)} of ${gain.goal}`;
}
