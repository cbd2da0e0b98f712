import { CurvesChart } from "../../charts/CurvesChart";
import { ChartFigure } from "../../components/ChartFigure";
import { DataTable } from "../../components/DataTable";
import { count, NONE } from "../../lib/format";
import { useWidth } from "../../lib/size";
import styles from "./Compare.module.css";
import { curvesOf, curvesSentence, QUANTITIES, type Quantity, type Row } from "./curves";

interface Props {
  clusters: readonly string[];
  rows: readonly Row[];
  selected: string;
  onSelect: (id: string) => void;
}

const HEIGHT = 300;

/** Each quantity over device counts; cost only where there is a price. */
export function QuantityFigures(props: Props) {
  const priced = props.rows.some((row) => row.point.cost_per_million_tokens != null);
  return (
    <>
      <div className={styles.figures}>
        {QUANTITIES.filter((each) => each.name !== "cost" || priced).map((quantity) => (
          <QuantityFigure key={quantity.name} {...props} quantity={quantity} />
        ))}
      </div>
      <p className={styles.key}>
        Full marks are proved best, hollow ones are the best found. × does not fit, ? undecided. Dotted: as if
        every device added as much as the first ones.{!priced && " Give a price to see costs."}
      </p>
    </>
  );
}

function QuantityFigure({ clusters, rows, selected, onSelect, quantity }: Props & { quantity: Quantity }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const sentence = curvesSentence(rows, quantity);
  const counts = [...new Set(rows.map((row) => row.point.num_devices))].sort((a, b) => a - b);
  const at = (cluster: string, devices: number) => {
    const value = rows.find((row) => row.cluster === cluster && row.point.num_devices === devices);
    const known = value && quantity.pick(value.point);
    return known == null ? NONE : quantity.figure(known);
  };
  return (
    <ChartFigure
      title={quantity.title}
      sentence={sentence}
      table={() => (
        <DataTable
          caption={`${quantity.title} by devices`}
          captionHidden
          columns={[
            { name: "devices", title: "Devices", cell: count },
            ...clusters.map((name) => ({
              name,
              title: name,
              number: true,
              cell: (devices: number) => at(name, devices),
            })),
          ]}
          rows={counts}
          rowKey={(devices) => devices}
        />
      )}
    >
      <div ref={ref} style={{ minHeight: HEIGHT }}>
        {width > 0 && rows.length > 0 && (
          <CurvesChart
            curves={curvesOf(clusters, rows, quantity)}
            logarithmic={quantity.logarithmic}
            ideal={quantity.ideal}
            figure={quantity.tick ?? quantity.figure}
            selected={selected}
            onSelect={onSelect}
            width={width}
            height={HEIGHT}
            sentence={sentence}
          />
        )}
      </div>
    </ChartFigure>
  );
}
