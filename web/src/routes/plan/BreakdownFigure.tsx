import type { Schemas } from "../../api/client";
import type { PlanAnswer } from "../../api/queries/plans";
import { Legend } from "../../charts/Legend";
import { StackedBar } from "../../charts/StackedBar";
import type { Piece } from "../../charts/stack";
import { ChartFigure } from "../../components/ChartFigure";
import { DataTable } from "../../components/DataTable";
import { percent, seconds } from "../../lib/format";
import { useWidth } from "../../lib/size";
import { timePieces } from "./timePieces";

interface Props {
  plan: PlanAnswer;
  causes: readonly Schemas["Cause"][] | undefined;
}

/** Where the step goes. */
export function BreakdownFigure({ plan, causes = [] }: Props) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const pieces = timePieces(plan.breakdown_s);
  const total = pieces.reduce((sum, each) => sum + each.value, 0);
  const share = (each: Piece) => percent(each.value / total);
  const largest = [...pieces].sort((a, b) => b.value - a.value).slice(0, 3);
  const sentence = `Of ${seconds(total)}, ${largest.map((each) => `${each.look.label.toLowerCase()} takes ${share(each)}`).join(", ")}.`;
  const because = (name: string) => causes.find((each) => each.term === name);
  return (
    <ChartFigure
      title="Where the step goes"
      sentence={sentence}
      table={() => (
        <DataTable
          caption="Parts of the step time"
          captionHidden
          columns={[
            { name: "part", title: "Part", cell: (row) => row.look.label },
            { name: "time", title: "Time", number: true, cell: (row) => seconds(row.value) },
            { name: "share", title: "Share", number: true, cell: share },
            { name: "choice", title: "From", cell: (row) => because(row.name)?.choice },
            { name: "because", title: "Because", cell: (row) => because(row.name)?.because },
          ]}
          rows={pieces}
          rowKey={(row) => row.name}
        />
      )}
    >
      <div ref={ref}>
        {width > 0 && <StackedBar pieces={pieces} width={width} height={28} sentence={sentence} />}
      </div>
      <Legend pieces={pieces} figure={share} />
    </ChartFigure>
  );
}
