import type { Diagnosis } from "../../../api/queries/diagnosis";
import { ComparedBars } from "../../../charts/ComparedBars";
import { Legend } from "../../../charts/Legend";
import { ChartFigure } from "../../../components/ChartFigure";
import { DataTable } from "../../../components/DataTable";
import { seconds, secondsChange } from "../../../lib/format";
import { useWidth } from "../../../lib/size";
import { differenceOf } from "./Answer";
import { legendPieces, RANK_PARTS, rankPieces, termPieces } from "./rows";

/** Predicted above measured, part by part, on one axis of seconds. */
export function StepFigure({ diagnosis }: { diagnosis: Diagnosis }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const { terms } = diagnosis;
  const measured = termPieces(terms, "measured_s");
  const measured_s = measured.reduce((sum, each) => sum + each.value, 0);
  const bars = [
    {
      name: "Predicted",
      pieces: termPieces(terms, "predicted_s"),
      figure: seconds(diagnosis.predicted_step_s),
    },
    {
      name: "Measured",
      pieces: measured,
      figure: `${seconds(measured_s)}, mean of the traced ranks and steps`,
    },
  ];
  const sentence = `A step is predicted to take ${seconds(diagnosis.predicted_step_s)}; the traced steps take ${seconds(measured_s)}.`;
  return (
    <ChartFigure
      title="Where the step goes"
      sentence={sentence}
      table={() => (
        <DataTable
          caption="Parts of the step, predicted and measured"
          captionHidden
          columns={[
            { name: "part", title: "Part", cell: (row) => row.words },
            { name: "predicted", title: "Predicted", number: true, cell: (row) => seconds(row.predicted_s) },
            { name: "measured", title: "Measured", number: true, cell: (row) => seconds(row.measured_s) },
            {
              name: "difference",
              title: "Difference",
              number: true,
              cell: (row) => differenceOf(row.predicted_s, row.measured_s, secondsChange),
            },
            { name: "hidden", title: "Hidden besides", number: true, cell: (row) => seconds(row.hidden_s) },
            { name: "waiting", title: "Waiting", number: true, cell: (row) => seconds(row.waiting_s) },
          ]}
          rows={terms}
          rowKey={(row) => row.term}
        />
      )}
    >
      <div ref={ref}>{width > 0 && <ComparedBars bars={bars} width={width} sentence={sentence} />}</div>
      <Legend pieces={legendPieces(terms)} figure={(piece) => seconds(piece.value)} />
    </ChartFigure>
  );
}

/** Bars of so many ranks are drawn; the table has all. */
const MOST_BARS = 32;

export function RanksFigure({ ranks }: { ranks: Diagnosis["ranks"] }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const slowest = ranks.reduce((most, each) => (each.own_s > most.own_s ? each : most));
  const shown = ranks.toSorted((a, b) => b.own_s - a.own_s).slice(0, MOST_BARS);
  const bars = shown.map((each) => ({
    name: `Rank ${each.rank}`,
    pieces: rankPieces(each),
    figure: `${seconds(each.own_s)} own work`,
  }));
  const rest = ranks.length > shown.length ? ` The ${MOST_BARS} with the most are drawn.` : "";
  const sentence = `Most work of its own has rank ${slowest.rank}: ${seconds(slowest.own_s)} of a step of ${seconds(slowest.step_s)}.${rest}`;
  return (
    <ChartFigure
      title="Rank by rank"
      sentence={sentence}
      table={() => (
        <DataTable
          caption="Time of each traced rank"
          captionHidden
          columns={[
            { name: "rank", title: "Rank", cell: (row) => row.rank },
            { name: "stage", title: "Stage", cell: (row) => row.stage ?? "–" },
            { name: "step", title: "Step", number: true, cell: (row) => seconds(row.step_s) },
            { name: "own", title: "Own work", number: true, cell: (row) => seconds(row.own_s) },
            {
              name: "communication",
              title: "Communication that shows",
              number: true,
              cell: (row) => seconds(row.communication_s),
            },
            { name: "waiting", title: "Of it waiting", number: true, cell: (row) => seconds(row.waiting_s) },
            { name: "idle", title: "Nothing runs", number: true, cell: (row) => seconds(row.idle_s) },
          ]}
          rows={ranks}
          rowKey={(row) => row.rank}
        />
      )}
    >
      <div ref={ref}>{width > 0 && <ComparedBars bars={bars} width={width} sentence={sentence} />}</div>
      <Legend
        pieces={Object.entries(RANK_PARTS).map(([name, look]) => ({ name, look, value: 1 }))}
        figure={() => ""}
      />
    </ChartFigure>
  );
}
