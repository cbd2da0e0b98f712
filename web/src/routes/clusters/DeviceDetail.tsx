import { useQuery } from "@tanstack/react-query";
import { deviceQuery } from "../../api/queries/hardware";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { bandwidth, bytes, count, flopsPerSecond } from "../../lib/format";
import styles from "./Clusters.module.css";
import { FitsReport } from "./FitsReport";
import { SourceTable } from "./SourceTable";

/** One accelerator: its peaks, what is measured of it, and the source of every number. */
export function DeviceDetail({ name }: { name: string }) {
  const found = useQuery(deviceQuery(name));
  if (found.error) return <ProblemNotice error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading label={name} height={300} lines={6} />;
  const device = found.data;
  return (
    <>
      <h2>{device.name}</h2>
      <dl className={styles.facts}>
        <dt>Maker</dt>
        <dd>
          {device.vendor}, {device.architecture}
          {device.num_compute_units != null && `, ${count(device.num_compute_units)} compute units`}
        </dd>
        <dt>Memory</dt>
        <dd>
          {bytes(device.memory_bytes)} at {bandwidth(device.memory_bandwidth_bytes_per_s)}
        </dd>
        <dt>Peaks</dt>
        <dd>
          {Object.entries(device.peak_flops_per_s)
            .map(([format, peak]) => `${format} ${flopsPerSecond(peak)}`)
            .join(" · ")}
        </dd>
      </dl>
      <FitsReport kind="device" name={name} />
      <SourceTable sources={device.provenance} />
    </>
  );
}
