import { useQuery } from "@tanstack/react-query";
import { type DeviceRow, devicesQuery } from "../../api/queries/hardware";
import type { Column } from "../../components/DataTable";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { bandwidth, flopsPerSecond, gibibytes } from "../../lib/format";
import { DeviceDetail } from "./DeviceDetail";
import { Shelf, type ShelfProps } from "./Shelf";

const COLUMNS: readonly Column<DeviceRow>[] = [
  { name: "vendor", title: "Vendor", cell: (row) => row.vendor },
  { name: "memory", title: "Memory", number: true, cell: (row) => gibibytes(row.memory_bytes) },
  {
    name: "bandwidth",
    title: "at",
    number: true,
    cell: (row) => bandwidth(row.memory_bandwidth_bytes_per_s),
  },
  ...["bf16", "fp8"].map((format) => ({
    name: format,
    title: format,
    number: true,
    cell: (row: DeviceRow) => flopsPerSecond(row.peak_flops_per_s[format]),
  })),
];

/** Every accelerator of the catalogue. */
export function DeviceShelf({ search, write }: ShelfProps) {
  const listed = useQuery(devicesQuery);
  if (listed.error) return <ProblemNotice error={listed.error} onRetry={() => void listed.refetch()} />;
  if (!listed.data) return <Loading label="devices" height={500} lines={12} />;
  return (
    <Shelf
      noun="device"
      caption="Accelerators; rates are dense peaks"
      rows={listed.data}
      columns={COLUMNS}
      chosen={search.device}
      onChoose={(device) => write({ device })}
    >
      <DeviceDetail name={search.device} />
    </Shelf>
  );
}
