import { Link } from "@tanstack/react-router";
import type { PlanAnswer } from "../../api/queries/plans";
import { Provenance } from "../../components/Provenance";
import { backendWords } from "../../lib/backends";
import { change, count, gibibytes, percent, seconds, shortId, tokensPerSecond } from "../../lib/format";
import { toldStrategy } from "../../lib/relief";
import { strategyParts } from "../plan/strategy";
import styles from "./Diff.module.css";

interface Props {
  name: "a" | "b";
  plan: PlanAnswer;
  /** The plan whose figures these are told against. */
  against?: PlanAnswer;
}

/** The headline of one side. */
export function Side({ name, plan, against }: Props) {
  const { model, cluster, workload } = plan.problem;
  const devices = cluster.pools.reduce((sum, pool) => sum + pool.devices_per_node * pool.num_nodes, 0);
  const ratio = (pick: (of: PlanAnswer) => number) =>
    against ? ` (${change(pick(plan) / pick(against) - 1)})` : "";
  return (
    <section className={styles.side} aria-label={`Plan ${name}`}>
      <h2>
        <span className={styles.letter}>{name}</span>{" "}
        <Link to="/plans/$planId" params={{ planId: plan.plan_id }}>
          {model.name} on {count(devices)} ×{" "}
          {[...new Set(cluster.pools.map((pool) => pool.device.name))].join(" + ")}
        </Link>
      </h2>
      <p className={styles.soft}>
        <code>{shortId(plan.plan_id)}</code> · <b>{backendWords(plan.backend, plan.release)}</b> ·{" "}
        {count(workload.global_batch_size)} samples of {count(workload.sequence_length)} tokens ·{" "}
        {workload.precision} <Provenance provenance={plan.provenance} />
      </p>
      <dl className={styles.figures}>
        <dt>Step time</dt>
        <dd>
          {seconds(plan.step_time_s)}
          <small>{ratio((each) => each.step_time_s)}</small>
        </dd>
        <dt>Throughput</dt>
        <dd>
          {tokensPerSecond(plan.tokens_per_s)}
          <small>{ratio((each) => each.tokens_per_s)}</small>
        </dd>
        <dt>Model FLOPs utilization</dt>
        <dd>{percent(plan.model_flops_utilization)}</dd>
        <dt>Peak memory</dt>
        <dd>
          {gibibytes(plan.peak_memory_bytes)}
          <small> of {gibibytes(plan.memory_limit_bytes)}</small>
        </dd>
        <dt>Proof</dt>
        <dd>
          {proved(plan)}
          {plan.fastest && !plan.fastest.is_recommended && ", recommended"}
        </dd>
      </dl>
      <ul className={styles.strategy} aria-label={`Strategy of plan ${name}`}>
        {strategyParts(toldStrategy(plan)).map((part) => (
          <li key={part.name}>
            {part.name} <b>{part.value}</b>
          </li>
        ))}
      </ul>
    </section>
  );
}

function proved(plan: Pick<PlanAnswer, "status" | "gap">): string {
  if (plan.gap == null) return "Not searched";
  return plan.status === "optimal" ? "Proved best" : `Gap ${percent(plan.gap, 2)}`;
}
