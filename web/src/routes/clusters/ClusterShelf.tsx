import { useQuery } from "@tanstack/react-query";
import { type ClusterRow, clustersQuery } from "../../api/queries/catalogue";
import type { Column } from "../../components/DataTable";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { bandwidth, count, gibibytes } from "../../lib/format";
import { ClusterDetail } from "./ClusterDetail";
import { Shelf, type ShelfProps } from "./Shelf";

const COLUMNS: readonly Column<ClusterRow>[] = [
  { name: "device", title: "Device", cell: (row) => row.device },
  { name: "memory", title: "Memory", number: true, cell: (row) => gibibytes(row.memory_bytes) },
  { name: "node", title: "A node", number: true, cell: (row) => count(row.devices_per_node) },
  { name: "domain", title: "Scale-up", number: true, cell: (row) => count(row.scale_up_domain_size) },
  {
    name: "scale_up",
    title: "at",
    number: true,
    cell: (row) => bandwidth(row.scale_up_bandwidth_bytes_per_s),
  },
  {
    name: "nic",
    title: "Network a node",
    number: true,
    cell: (row) => `${count(row.nics_per_node)} × ${bandwidth(row.nic_bandwidth_bytes_per_s)}`,
  },
  { name: "whose", title: "From", cell: (row) => (row.builtin ? "catalogue" : "stored") },
];

/** Every cluster that a question can name. */
export function ClusterShelf({ search, write }: ShelfProps) {
  const listed = useQuery(clustersQuery);
  if (listed.error) return <ProblemNotice error={listed.error} onRetry={() => void listed.refetch()} />;
  if (!listed.data) return <Loading label="clusters" height={500} lines={12} />;
  return (
    <Shelf
      noun="cluster"
      caption="Clusters of the catalogue and stored ones; a question scales them"
      rows={listed.data}
      columns={COLUMNS}
      chosen={search.cluster}
      onChoose={(cluster) => write({ cluster })}
    >
      <ClusterDetail name={search.cluster} />
    </Shelf>
  );
}
