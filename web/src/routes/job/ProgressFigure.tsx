import type { JobEvent } from "../../api/jobEvents";
import { MARGIN, type Reading, stepPath, stepScales } from "../../charts/steps";
import { ChartFigure } from "../../components/ChartFigure";
import { DataTable } from "../../components/DataTable";
import { count, percent, seconds } from "../../lib/format";
import { useWidth } from "../../lib/size";

const HEIGHT = 220;

/** The best plan so far and the bound, over the time of the search. */
export function ProgressFigure({ events }: { events: readonly JobEvent[] }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const told = events.filter((each) => each.progress.incumbent_s != null || each.progress.bound_s != null);
  const begun = Date.parse((events.find((each) => each.status === "running") ?? events[0])?.at ?? "");
  const at_s = (each: JobEvent) => (Date.parse(each.at) - begun) / 1000;
  const readings = (pick: (each: JobEvent) => number | null | undefined): Reading[] =>
    told.flatMap((each) => {
      const value = pick(each);
      return value == null ? [] : [{ at_s: at_s(each), value }];
    });
  const [incumbent, bound] = [
    readings((each) => each.progress.incumbent_s),
    readings((each) => each.progress.bound_s),
  ];
  if (incumbent.length === 0 && bound.length === 0) return null;
  const end_s = Math.max(...events.map(at_s), 0.001);
  const last = told.at(-1)?.progress;
  const sentence = `After ${seconds(end_s, 3)} the best plan takes ${seconds(last?.incumbent_s)} a step; no plan is faster than ${seconds(last?.bound_s)}.`;
  const scales = stepScales([incumbent, bound], end_s, { width, height: HEIGHT });
  return (
    <ChartFigure
      title="Best plan and bound"
      sentence={sentence}
      table={() => (
        <DataTable
          caption="What the search reported"
          columns={[
            { name: "at", title: "After", cell: (row) => seconds(at_s(row), 3) },
            { name: "best", title: "Best", number: true, cell: (row) => seconds(row.progress.incumbent_s) },
            { name: "bound", title: "Bound", number: true, cell: (row) => seconds(row.progress.bound_s) },
            { name: "gap", title: "Gap", number: true, cell: (row) => percent(row.progress.gap, 2) },
            { name: "solved", title: "Solved", number: true, cell: (row) => count(row.progress.evaluated) },
          ]}
          rows={told}
          rowKey={(row) => row.seq}
        />
      )}
    >
      <div ref={ref}>
        {width > 0 && (
          <svg role="img" aria-label={sentence} width={width} height={HEIGHT}>
            {scales.y.ticks(4).map((tick) => (
              <g key={tick} transform={`translate(0 ${scales.y(tick)})`}>
                <line x1={MARGIN.left} x2={width - MARGIN.right} stroke="var(--line)" />
                <text x={MARGIN.left - 8} dy="0.32em" textAnchor="end" fill="var(--ink-soft)" fontSize="12">
                  {seconds(tick, 3)}
                </text>
              </g>
            ))}
            {scales.x.ticks(Math.max(2, Math.floor(width / 120))).map((tick) => (
              <text
                key={tick}
                x={scales.x(tick)}
                y={HEIGHT - 6}
                textAnchor="middle"
                fill="var(--ink-soft)"
                fontSize="12"
              >
                {seconds(tick, 2)}
              </text>
            ))}
            <path
              d={stepPath(bound, end_s, scales)}
              fill="none"
              stroke="var(--series-2)"
              strokeWidth="2"
              strokeDasharray="5 3"
            />
            <path
              d={stepPath(incumbent, end_s, scales)}
              fill="none"
              stroke="var(--series-1)"
              strokeWidth="2"
            />
          </svg>
        )}
      </div>
      <p>Solid: best plan so far. Dashed: no plan is faster.</p>
    </ChartFigure>
  );
}
