import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ClusterDocument, clusterQuery, type Sources } from "../../api/queries/hardware";
import { DataTable } from "../../components/DataTable";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { bandwidth, bytes, count, dollars, moment, seconds } from "../../lib/format";
import styles from "./Clusters.module.css";
import { SourceTable } from "./SourceTable";

/** One cluster: its pools, its network level by level, and the source of every number. */
export function ClusterDetail({ name }: { name: string }) {
  const found = useQuery(clusterQuery(name));
  if (found.error) return <ProblemNotice error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading label={name} height={300} lines={6} />;
  const { builtin, created_at, version } = found.data;
  const cluster = found.data.document as unknown as ClusterDocument;
  return (
    <>
      <h2>{name}</h2>
      <p className={styles.soft}>
        {builtin
          ? "In the catalogue; it never changes."
          : `Version ${version}, stored ${moment(created_at)}.`}{" "}
        {cluster.price_per_device_hour != null && `${dollars(cluster.price_per_device_hour)} a device-hour. `}
        <Link to="/" search={{ cluster: name }}>
          Plan on it
        </Link>
      </p>
      {cluster.pools.map((pool) => (
        <Pool key={pool.name} pool={pool} />
      ))}
      {cluster.fabric.length > 0 && (
        <DataTable
          caption="Network between nodes, level by level"
          columns={[
            { name: "level", title: "Level", cell: (row) => row.name },
            { name: "nodes", title: "Nodes below", number: true, cell: (row) => count(row.num_nodes) },
            {
              name: "oversubscription",
              title: "Oversubscription",
              number: true,
              cell: (row) => `${row.oversubscription} : 1`,
            },
            { name: "latency", title: "Adds", number: true, cell: (row) => seconds(row.latency_s, 2) },
          ]}
          rows={cluster.fabric}
          rowKey={(row) => row.name}
        />
      )}
      <SourceTable sources={(cluster.provenance ?? {}) as Sources} />
    </>
  );
}

function Pool({ pool }: { pool: ClusterDocument["pools"][number] }) {
  const { scale_up: scaleUp, host } = pool;
  return (
    <dl className={styles.facts}>
      <dt>Device</dt>
      <dd>
        <Link to="/clusters" search={{ show: "devices", device: pool.device.name }}>
          {pool.device.name}
        </Link>
        , {count(pool.devices_per_node)} a node
      </dd>
      <dt>Scale-up</dt>
      <dd>
        {scaleUp.name}: {count(scaleUp.domain_size)} devices, {bandwidth(scaleUp.bandwidth_bytes_per_s)} each
        way, {seconds(scaleUp.latency_s, 2)}
        {scaleUp.in_network_reduction && ", reduces in the switch"}
      </dd>
      <dt>Network</dt>
      <dd>
        {count(pool.nics_per_node)} × {bandwidth(pool.nic_bandwidth_bytes_per_s)} a node,{" "}
        {seconds(pool.nic_latency_s, 2)}
        {pool.rail_optimized && ", rail optimized"}
      </dd>
      {host && (
        <>
          <dt>Host</dt>
          <dd>
            {bytes(host.memory_bytes)}, {bandwidth(host.link_bandwidth_bytes_per_s)} to a device
          </dd>
        </>
      )}
    </dl>
  );
}
