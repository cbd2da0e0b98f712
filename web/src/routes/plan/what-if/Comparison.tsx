import { lazy, type ReactNode, Suspense } from "react";
import type { PlanAnswer } from "../../../api/queries/plans";
import type { Bar } from "../../../charts/ComparedBars";
import { Legend } from "../../../charts/Legend";
import type { Piece } from "../../../charts/stack";
import { lookOf, MEMORY_TERMS, TIME_TERMS } from "../../../charts/terms";
import { ChartFigure } from "../../../components/ChartFigure";
import { DataTable } from "../../../components/DataTable";
import { gibibytes, seconds } from "../../../lib/format";
import { useWidth } from "../../../lib/size";
import { timePieces } from "../timePieces";

/** Bars come with the first estimate, so their code may come after the first view. */
const ComparedBars = lazy(async () => ({
  default: (await import("../../../charts/ComparedBars")).ComparedBars,
}));

type Numbers = Pick<PlanAnswer, "breakdown_s" | "step_time_s" | "stages" | "memory_limit_bytes">;
interface Props {
  plan: Numbers;
  estimate: Numbers;
}

const PLAN = "Plan, solved";
const ESTIMATE = "What if, estimated";

export function TimeFigure({ plan, estimate }: Props) {
  const bars = [
    { name: PLAN, pieces: timePieces(plan.breakdown_s), figure: seconds(plan.step_time_s) },
    { name: ESTIMATE, pieces: timePieces(estimate.breakdown_s), figure: seconds(estimate.step_time_s) },
  ];
  const sentence = `The plan's step takes ${seconds(plan.step_time_s)}; this one ${seconds(estimate.step_time_s)}.`;
  return (
    <Compared
      title="Where the step goes"
      sentence={sentence}
      bars={bars}
      looks={TIME_TERMS}
      write={seconds}
    />
  );
}

/** Memory of the stage that is fullest. */
export function MemoryFigure({ plan, estimate }: Props) {
  const [own, other] = [worstStage(plan), worstStage(estimate)];
  const bars = [
    { name: PLAN, pieces: own.pieces, figure: gibibytes(own.total) },
    { name: ESTIMATE, pieces: other.pieces, figure: gibibytes(other.total) },
  ];
  const limit = estimate.memory_limit_bytes;
  const sentence =
    `The fullest stage holds ${gibibytes(own.total)} in the plan and ${gibibytes(other.total)} here; ` +
    `${gibibytes(limit)} may be used.`;
  return (
    <Compared
      title="Memory of the fullest stage"
      sentence={sentence}
      bars={bars}
      limit={limit}
      looks={MEMORY_TERMS}
      write={gibibytes}
    />
  );
}

function worstStage(numbers: Numbers): { pieces: readonly Piece[]; total: number } {
  const bills = numbers.stages.map((stage) => stage.peak_memory_bytes);
  const worst = bills.reduce((most, each) => (each.total > most.total ? each : most));
  const { total, ...parts } = worst;
  const order = Object.keys(MEMORY_TERMS);
  const pieces = Object.entries(parts as Record<string, number>)
    .sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))
    .map(([name, value]) => ({ name, value, look: lookOf(MEMORY_TERMS, name) }));
  return { pieces, total };
}

interface ComparedProps {
  title: string;
  sentence: string;
  bars: readonly Bar[];
  limit?: number;
  looks: Parameters<typeof lookOf>[0];
  write: (value: number) => string;
}

function Compared({ title, sentence, bars, limit, looks, write }: ComparedProps): ReactNode {
  const { ref, width } = useWidth<HTMLDivElement>();
  const names = [
    ...new Set([...Object.keys(looks), ...bars.flatMap((bar) => bar.pieces.map((each) => each.name))]),
  ];
  const value = (bar: Bar | undefined, name: string) =>
    bar?.pieces.find((each) => each.name === name)?.value ?? 0;
  const [own, other] = bars;
  const rows = names.filter((name) => bars.some((bar) => value(bar, name) > 0));
  const pieces = rows.map((name) => ({ name, value: value(other, name), look: lookOf(looks, name) }));
  return (
    <ChartFigure
      title={title}
      sentence={sentence}
      table={() => (
        <DataTable
          caption={title}
          captionHidden
          columns={[
            { name: "part", title: "Part", cell: (row) => lookOf(looks, row).label },
            { name: "plan", title: "Plan", number: true, cell: (row) => write(value(own, row)) },
            { name: "estimate", title: "What if", number: true, cell: (row) => write(value(other, row)) },
          ]}
          rows={rows}
          rowKey={(row) => row}
        />
      )}
    >
      <div ref={ref}>
        <Suspense>
          {width > 0 && <ComparedBars bars={bars} limit={limit} width={width} sentence={sentence} />}
        </Suspense>
      </div>
      <Legend pieces={pieces} figure={(piece) => write(piece.value)} />
    </ChartFigure>
  );
}
