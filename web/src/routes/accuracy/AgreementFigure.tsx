import { useMemo, useState } from "react";
import { Agreement, AgreementLegend } from "../../charts/Agreement";
import { agreementScales, looksOf, type Pair } from "../../charts/agreement";
import { ChartFigure } from "../../components/ChartFigure";
import { type Column, DataTable } from "../../components/DataTable";
import { change, plural } from "../../lib/format";
import { useWidth } from "../../lib/size";
import styles from "./Accuracy.module.css";
import { errorOf } from "./runs";

interface Props {
  title: string;
  sentence: string;
  quantity: string;
  pairs: readonly Pair[];
  format: (value: number) => string;
  tickLabel: (value: number) => string;
  /** What one is in the unit of the tick labels: 2^30 bytes are a GiB. */
  unit?: number;
  /** Id of the run that the address names. */
  selected: string;
  onSelect: (id: string) => void;
}

const MOST_ROWS = 500;
const [LEAST_HEIGHT, MOST_HEIGHT] = [340, 560];

/** Predicted over measured of the chosen runs; a press shows a run. */
export function AgreementFigure(props: Props) {
  const { pairs, quantity, selected } = props;
  const { ref, width } = useWidth<HTMLDivElement>();
  const [hovered, setHovered] = useState<Pair>();
  const looks = useMemo(() => looksOf(pairs.map((each) => each.series)), [pairs]);
  const height = Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, width * 0.7));
  const scales = useMemo(() => agreementScales(pairs, { width, height }), [pairs, width, height]);
  const ringed = hovered ?? pairs.find((each) => each.id === selected);
  return (
    <ChartFigure title={props.title} sentence={props.sentence} table={() => <PairTable {...props} />}>
      <div ref={ref} className={styles.chart}>
        {width > 0 && (
          <Agreement
            pairs={pairs}
            looks={looks}
            scales={scales}
            box={{ width, height }}
            sentence={props.sentence}
            quantity={quantity}
            tickLabel={props.tickLabel}
            unit={props.unit ?? 1}
            ringed={ringed}
            onHover={setHovered}
            onSelect={(pair) => props.onSelect(pair?.id ?? "")}
          />
        )}
      </div>
      <AgreementLegend looks={looks} />
      <p className={styles.note}>
        Dashed: predicted = measured. Between full lines within 10 %, between dotted lines within 25 %. Above
        the line the prediction is too high.{" "}
        {hovered && (
          <strong>
            {hovered.id}: measured {props.format(hovered.measured)}, predicted{" "}
            {props.format(hovered.predicted)} ({change(errorOf(hovered.predicted, hovered.measured))})
          </strong>
        )}
      </p>
    </ChartFigure>
  );
}

function PairTable({ pairs, quantity, format }: Props) {
  const error = (pair: Pair) => errorOf(pair.predicted, pair.measured);
  const worst = pairs.toSorted((a, b) => Math.abs(error(b)) - Math.abs(error(a))).slice(0, MOST_ROWS);
  const caption =
    pairs.length > MOST_ROWS
      ? `The ${plural(MOST_ROWS, "run")} with the largest error of ${quantity}, of ${plural(pairs.length, "run")}; choose a source, device or model to see others`
      : `Measured and predicted ${quantity} of ${plural(pairs.length, "run")}, the largest error first`;
  const columns: Column<Pair>[] = [
    { name: "run", title: "Run", cell: (row) => row.id },
    { name: "source", title: "Source", cell: (row) => row.series },
    { name: "measured", title: "Measured", number: true, cell: (row) => format(row.measured) },
    { name: "predicted", title: "Predicted", number: true, cell: (row) => format(row.predicted) },
    { name: "error", title: "Error", number: true, cell: (row) => change(error(row)) },
  ];
  return <DataTable caption={caption} columns={columns} rows={worst} rowKey={(row) => row.id} />;
}
