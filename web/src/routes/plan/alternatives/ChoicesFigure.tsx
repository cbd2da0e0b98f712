import type { PlanAnswer } from "../../../api/queries/plans";
import { type ChoiceShape, ParetoChart } from "../../../charts/ParetoChart";
import { paretoFront } from "../../../charts/pareto";
import { ChartFigure } from "../../../components/ChartFigure";
import { DataTable } from "../../../components/DataTable";
import { gibibytes, seconds } from "../../../lib/format";
import { useWidth } from "../../../lib/size";
import styles from "./Alternatives.module.css";
import { type Choice, choicesSentence } from "./choices";

interface Props {
  plan: PlanAnswer;
  choices: readonly Choice[];
  selected: string;
  onSelect: (id: string) => void;
}

const SHAPES: Partial<Record<Choice["kind"], ChoiceShape>> = { plan: "plan", runner_up: "runner-up" };
const HEIGHT = 380;

/** Step time against peak memory. */
export function ChoicesFigure({ plan, choices, selected, onSelect }: Props) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const drawn = choices.flatMap(({ id, kind, name, step_time_s, peak_memory_bytes, fits }) =>
    step_time_s === null || peak_memory_bytes === null
      ? []
      : [
          {
            id,
            step_time_s,
            peak_memory_bytes,
            fits,
            shape: SHAPES[kind] ?? ("neighbour" as const),
            label: shortName(name),
          },
        ],
  );
  const sentence = choicesSentence(choices, plan.memory_limit_bytes);
  const front = paretoFront(drawn);
  return (
    <ChartFigure
      title="Step time and memory of what else could run"
      sentence={sentence}
      table={() => (
        <DataTable
          caption="The front: nothing that fits is both faster and smaller"
          columns={[
            { name: "choice", title: "Choice", cell: (row) => row.label },
            { name: "step", title: "Step time", number: true, cell: (row) => seconds(row.step_time_s) },
            {
              name: "memory",
              title: "Peak memory",
              number: true,
              cell: (row) => gibibytes(row.peak_memory_bytes),
            },
          ]}
          rows={front}
          rowKey={(row) => row.id}
        />
      )}
    >
      <div ref={ref} style={{ minHeight: HEIGHT }}>
        {width > 0 && (
          <ParetoChart
            choices={drawn}
            limit_bytes={plan.memory_limit_bytes}
            selected={selected}
            onSelect={onSelect}
            width={width}
            height={HEIGHT}
            sentence={sentence}
          />
        )}
      </div>
      <ul className={styles.key}>
        <li>◆ the plan</li>
        <li>■ runners-up, solved</li>
        <li>● one move away, estimated</li>
        <li>○ does not fit (△ far beyond the limit)</li>
        <li>line: nothing that fits is faster and smaller</li>
      </ul>
    </ChartFigure>
  );
}

/** Enough to know it by on the picture. */
function shortName(name: string): string {
  return name.length > 34 ? `${name.slice(0, 32).replace(/,?\s\S*$/, "")} \u2026` : name;
}
