import type { CollectiveFit } from "../../api/queries/hardware";
import { RangeBars } from "../../charts/RangeBars";
import { ChartFigure } from "../../components/ChartFigure";
import { type Column, DataTable } from "../../components/DataTable";
import { bandwidth, bytes, count, percent, plural, seconds } from "../../lib/format";
import { useWidth } from "../../lib/size";

function curveName(each: CollectiveFit): string {
  const where = each.num_nodes > 1 ? `on ${count(each.num_nodes)} nodes` : "in a node";
  return `${each.operation} ${count(each.group_size)} ${where}${each.concurrent ? ", all at once" : ""}`;
}

const COLUMNS: readonly Column<CollectiveFit>[] = [
  { name: "curve", title: "Curve", cell: curveName },
  { name: "points", title: "Points", number: true, cell: (row) => count(row.num_points) },
  { name: "smallest", title: "From", number: true, cell: (row) => bytes(row.smallest_bytes, 3) },
  { name: "largest", title: "to", number: true, cell: (row) => bytes(row.largest_bytes, 3) },
  { name: "latency", title: "Smallest takes", number: true, cell: (row) => seconds(row.latency_s, 3) },
  {
    name: "bandwidth",
    title: "Most bus bandwidth",
    number: true,
    cell: (row) => bandwidth(row.largest_bus_bandwidth_bytes_per_s),
  },
  { name: "spread", title: "Spread", number: true, cell: (row) => percent(row.sigma.between) },
  { name: "format", title: "From", cell: (row) => row.format },
];

/** Which sizes each curve of a collective covers, and how fast it gets. */
export function CollectivesFigure({ collectives }: { collectives: readonly CollectiveFit[] }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const fastest = [...collectives].sort(
    (a, b) => b.largest_bus_bandwidth_bytes_per_s - a.largest_bus_bandwidth_bytes_per_s,
  )[0];
  const sentence = `${plural(collectives.length, "curve")} of collectives; the most bus bandwidth is ${bandwidth(fastest?.largest_bus_bandwidth_bytes_per_s)}, of ${fastest ? curveName(fastest) : "none"}.`;
  return (
    <ChartFigure
      title="Collectives: measured sizes, and the most bus bandwidth"
      sentence={sentence}
      table={() => (
        <DataTable
          caption="Curves of collectives"
          captionHidden
          columns={COLUMNS}
          rows={collectives}
          rowKey={curveName}
        />
      )}
    >
      <div ref={ref}>
        {width > 0 && (
          <RangeBars
            ranges={collectives.map((each) => ({
              id: curveName(each),
              name: curveName(each),
              smallest_bytes: each.smallest_bytes,
              largest_bytes: each.largest_bytes,
              figure: bandwidth(each.largest_bus_bandwidth_bytes_per_s),
              wide: each.num_nodes > 1,
            }))}
            width={width}
            sentence={sentence}
          />
        )}
      </div>
    </ChartFigure>
  );
}
