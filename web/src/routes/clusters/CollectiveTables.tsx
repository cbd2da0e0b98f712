import type { CollectiveFit } from "../../api/queries/hardware";
import { type Column, DataTable } from "../../components/DataTable";
import { bandwidth, bytes, count, percent, seconds } from "../../lib/format";
import { groupName, type PointRow, pointRows } from "./collectiveCurves";

const CURVES: readonly Column<CollectiveFit>[] = [
  { name: "curve", title: "Group", cell: groupName },
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
  { name: "format", title: "Read from", cell: (row) => row.format },
];

const POINTS: readonly Column<PointRow>[] = [
  { name: "curve", title: "Group", cell: (row) => groupName(row.curve) },
  {
    name: "size",
    title: "Message",
    number: true,
    cell: ({ curve, place }) => bytes(curve.points.sizes_bytes[place]),
  },
  {
    name: "time",
    title: "Time",
    number: true,
    cell: ({ curve, place }) => seconds(curve.points.times_s[place]),
  },
  {
    name: "bandwidth",
    title: "Bus bandwidth",
    number: true,
    cell: ({ curve, place }) => bandwidth(curve.points.bus_bandwidths_bytes_per_s[place]),
  },
];

/** The curves of one operation, and their measured points. */
export function CollectiveTables({
  operation,
  curves,
}: {
  operation: string;
  curves: readonly CollectiveFit[];
}) {
  return (
    <>
      <DataTable caption={`Curves of ${operation}`} columns={CURVES} rows={curves} rowKey={groupName} />
      <DataTable
        caption={`Measured points of ${operation}`}
        columns={POINTS}
        rows={pointRows(curves)}
        rowKey={({ curve, place }) => `${groupName(curve)} ${place}`}
      />
    </>
  );
}
