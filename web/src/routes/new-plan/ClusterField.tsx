import { useQuery } from "@tanstack/react-query";
import type { Finding } from "../../api/problem";
import { type ClusterRow, clustersQuery } from "../../api/queries/catalogue";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { bandwidth, count, gibibytes } from "../../lib/format";
import { FileButton } from "./FileButton";
import type { FieldsProps } from "./fields";
import { missing } from "./ModelField";
import styles from "./NewPlan.module.css";

interface Props extends FieldsProps {
  findings: readonly Finding[];
  devicesFindings: readonly Finding[];
  openFile: (file: File) => void;
}

/** On which devices: a cluster of the catalogue scaled to a count, or a document. */
export function ClusterField({ draft, documents, change, findings, devicesFindings, openFile }: Props) {
  const { data: clusters = [] } = useQuery(clustersQuery);
  const chosen = draft.clusterFile ? undefined : clusters.find((each) => each.name === draft.cluster);
  return (
    <fieldset className={styles.group}>
      <legend>Cluster</legend>
      {draft.clusterFile ? (
        <Field
          label="Cluster file"
          findings={missing(draft.clusterFile, documents.cluster?.name) ?? findings}
        >
          {(control) => (
            <div className={styles.files}>
              <output {...control}>{draft.clusterFile}</output>
              <Button onClick={() => change({ clusterFile: "" })}>Use the catalogue</Button>
            </div>
          )}
        </Field>
      ) : (
        <Field label="Cluster" findings={findings}>
          {(control) => (
            <select
              {...control}
              value={draft.cluster}
              onChange={(event) => change({ cluster: event.target.value })}
            >
              {!chosen && <option value={draft.cluster}>{draft.cluster}</option>}
              {clusters.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.name}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Field label="Devices" note="Empty = as many as the document says" findings={devicesFindings}>
        {(control) => (
          <input
            {...control}
            inputMode="numeric"
            value={draft.devices}
            onChange={(event) => change({ devices: event.target.value })}
          />
        )}
      </Field>
      <div className={styles.files}>
        <FileButton label="Open cluster document" onFile={openFile} />
      </div>
      {chosen && <Facts cluster={chosen} />}
    </fieldset>
  );
}

function Facts({ cluster }: { cluster: ClusterRow }) {
  return (
    <dl className={styles.facts}>
      <dt>Device</dt>
      <dd>
        {cluster.device}, {gibibytes(cluster.memory_bytes)}
      </dd>
      <dt>Node</dt>
      <dd>{count(cluster.devices_per_node)} devices</dd>
      <dt>Scale-up</dt>
      <dd>
        {cluster.scale_up}, {bandwidth(cluster.scale_up_bandwidth_bytes_per_s)}
      </dd>
      <dt>Network</dt>
      <dd>
        {count(cluster.nics_per_node)} × {bandwidth(cluster.nic_bandwidth_bytes_per_s)} a node
      </dd>
    </dl>
  );
}
