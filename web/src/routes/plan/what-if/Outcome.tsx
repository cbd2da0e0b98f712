import { asProblem, type Finding } from "../../../api/problem";
import type { PlanAnswer } from "../../../api/queries/plans";
import { FindingList } from "../../../components/Field";
import { Loading } from "../../../components/Loading";
import { ProblemNotice } from "../../../components/ProblemNotice";
import {
  change,
  gibibytes,
  percent,
  plural,
  points,
  seconds,
  secondsRange,
  tokensPerSecond,
} from "../../../lib/format";
import { MemoryFigure, TimeFigure } from "./Comparison";
import type { LiveEstimate } from "./useLiveEstimate";
import styles from "./WhatIf.module.css";

interface Props {
  plan: PlanAnswer;
  live: LiveEstimate;
  /** Key of what is chosen now. */
  asked: string;
  changed: number;
  /** Findings that no control shows. */
  rest: readonly Finding[];
}

/** A refusal of the strategy is said beside the controls; any other trouble is a notice here. */
const OF_THE_QUESTION = 422;

/** The numbers of what is chosen, beside the plan's. */
export function Outcome({ plan, live, asked, changed, rest }: Props) {
  const { answer, answered, error, busy } = live;
  const refused = error ? asProblem(error) : undefined;
  if (refused && refused.status !== OF_THE_QUESTION) return <ProblemNotice error={error} />;
  if (!answer && !refused) return <Loading label="estimate" height={420} lines={5} />;
  const stale = answered !== asked;
  return (
    <section aria-label="Estimate" aria-busy={busy} className={styles.answer}>
      <div className={styles.head}>
        <h2>Estimated</h2>
        <span className={styles.kind}>
          {changed === 0 ? "the plan's own strategy" : "this one strategy, no search"}
        </span>
      </div>
      <div role="status">
        {refused && (
          <div className={styles.illegal}>
            <p>
              <strong>Not a legal strategy.</strong> {rest.length === 0 && "The marked controls say why. "}
              {answer && "The numbers are those of the last legal one."}
            </p>
            <FindingList findings={rest} />
          </div>
        )}
        {answer && !answer.fits && !refused && (
          <p className={styles.illegal}>
            <strong>Does not fit.</strong>{" "}
            {answer.missing_bytes > 0
              ? `The worst device lacks ${gibibytes(answer.missing_bytes)}.`
              : "Another limit of the question is broken."}
          </p>
        )}
      </div>
      {answer && (
        <div
          className={`${styles.numbers} ${refused ? styles.old : ""}`}
          data-answers={answered}
          data-stale={stale}
        >
          <Figures plan={plan} estimate={answer.plan} />
          <TimeFigure plan={plan} estimate={answer.plan} />
          <MemoryFigure plan={plan} estimate={answer.plan} />
          <p className={styles.filled}>
            dp {String(answer.plan.strategy.dp)},{" "}
            {plural(Number(answer.plan.strategy.num_microbatches), "micro-batch", "micro-batches")}
            {answer.filled_in.length > 0 && <> · filled in: {answer.filled_in.join(", ")}</>}
          </p>
        </div>
      )}
    </section>
  );
}

type Numbers = Pick<
  PlanAnswer,
  | "step_time_s"
  | "tokens_per_s"
  | "model_flops_utilization"
  | "peak_memory_bytes"
  | "memory_limit_bytes"
  | "step_time_interval_s"
>;

function Figures({ plan, estimate }: { plan: Numbers; estimate: Numbers }) {
  const [low, high] = estimate.step_time_interval_s;
  return (
    <dl className={styles.figures}>
      <Figure
        name="Step time"
        value={seconds(estimate.step_time_s)}
        ratio={estimate.step_time_s / plan.step_time_s}
        lessIsBetter
        small={`between ${secondsRange(low, high)}`}
      />
      <Figure
        name="Throughput"
        value={tokensPerSecond(estimate.tokens_per_s)}
        ratio={estimate.tokens_per_s / plan.tokens_per_s}
      />
      <Figure
        name="MFU"
        value={percent(estimate.model_flops_utilization)}
        ratio={estimate.model_flops_utilization / plan.model_flops_utilization}
        difference={points(estimate.model_flops_utilization - plan.model_flops_utilization)}
      />
      <Figure
        name="Peak memory"
        value={gibibytes(estimate.peak_memory_bytes)}
        ratio={estimate.peak_memory_bytes / plan.peak_memory_bytes}
        lessIsBetter
        small={`of ${gibibytes(estimate.memory_limit_bytes)}`}
      />
    </dl>
  );
}

interface FigureProps {
  name: string;
  value: string;
  /** Value over the plan's. */
  ratio: number;
  /** How the difference is said, where not as a share. */
  difference?: string;
  lessIsBetter?: boolean;
  small?: string;
}

function Figure({ name, value, ratio, difference, lessIsBetter = false, small }: FigureProps) {
  const by = ratio - 1;
  const same = Math.abs(by) < 5e-4;
  const better = lessIsBetter ? by < 0 : by > 0;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
      <dd className={same ? styles.same : better ? styles.better : styles.worse}>
        {same ? "as the plan" : (difference ?? change(by))}
        {!same && <span className="visually-hidden"> against the plan</span>}
      </dd>
      {small && <dd className={styles.same}>{small}</dd>}
    </div>
  );
}
