import type { ReactNode } from "react";
import type { PlanAnswer } from "../../api/queries/plans";
import { Provenance } from "../../components/Provenance";
import { backendWords } from "../../lib/backends";
import {
  chance,
  compact,
  count,
  gibibytes,
  percent,
  seconds,
  secondsRange,
  shortId,
  tokensPerSecond,
} from "../../lib/format";
import { toldStrategy } from "../../lib/relief";
import styles from "./Plan.module.css";
import { PlanActions } from "./PlanActions";
import { proofOf } from "./proof";
import { strategyParts } from "./strategy";

/** What people quote of a plan: how fast, how sure, how full, how good. */
export function Headline({ plan }: { plan: PlanAnswer }) {
  const { model, cluster, workload, calibration } = plan.problem;
  const devices = cluster.pools.reduce((sum, pool) => sum + pool.devices_per_node * pool.num_nodes, 0);
  const full = plan.peak_memory_bytes / plan.memory_limit_bytes;
  const [low, high] = plan.step_time_interval_s;
  return (
    <header className={styles.headline}>
      <div className={styles.title}>
        <h1>
          {model.name} on {count(devices)} ×{" "}
          {[...new Set(cluster.pools.map((pool) => pool.device.name))].join(" + ")}{" "}
          <span className={styles.backend}>by {backendWords(plan.backend, plan.release)}</span>
        </h1>
        <Provenance provenance={plan.provenance} />
        <PlanActions plan={plan} />
      </div>
      <p className={styles.question}>
        {cluster.name} · {count(workload.global_batch_size)} samples of {count(workload.sequence_length)}{" "}
        tokens a step · {workload.precision} · {workload.optimizer}
        {calibration && (
          <>
            {" "}
            · calibrated to {calibration.framework} {calibration.framework_version}{" "}
            <code title={calibration.calibration_id}>{shortId(calibration.calibration_id)}</code>
          </>
        )}
      </p>
      <dl className={styles.figures}>
        <Figure
          name="Throughput"
          value={tokensPerSecond(plan.tokens_per_s)}
          small={`${compact(plan.tokens_per_s_per_device)} tokens/s a device`}
        />
        <Figure
          name="Step time"
          value={seconds(plan.step_time_s)}
          small={`between ${secondsRange(low, high)}`}
        />
        <Figure
          name="Model FLOPs utilization"
          value={percent(plan.model_flops_utilization)}
          small="without recompute"
        />
        <Figure name="Peak memory" value={gibibytes(plan.peak_memory_bytes)}>
          <div className={styles.gauge} aria-hidden="true">
            <i style={{ width: `${Math.min(100, full * 100)}%` }} />
          </div>
          <div className={styles.small}>
            {percent(full)} of {gibibytes(plan.memory_limit_bytes)} usable
            {plan.fits_probability != null && `, fits: ${chance(plan.fits_probability)}`}
          </div>
        </Figure>
        <Figure {...proofOf(plan)} wide />
      </dl>
      <ul className={styles.strategy} aria-label="Strategy">
        {strategyParts(toldStrategy(plan)).map((part) => (
          <li key={part.name}>
            {part.name} <b>{part.value}</b>
          </li>
        ))}
      </ul>
    </header>
  );
}

interface FigureProps {
  name: string;
  value: string;
  small?: string;
  /** What is said about it is a sentence. */
  wide?: boolean;
  children?: ReactNode;
}

function Figure({ name, value, small, wide, children }: FigureProps) {
  return (
    <div className={wide ? `${styles.figure} ${styles.wide}` : styles.figure}>
      <dt>{name}</dt>
      <dd>
        {value}
        {small && <div className={styles.small}>{small}</div>}
        {children}
      </dd>
    </div>
  );
}
