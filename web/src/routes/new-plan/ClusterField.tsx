import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ClusterRow, clusterQuery, clustersQuery } from "../../api/queries/catalogue";
import { Button } from "../../components/Button";
import { TextField } from "../../components/ChoiceField";
import { Field } from "../../components/Field";
import { FileButton } from "../../components/FileButton";
import { bandwidth, count, gibibytes } from "../../lib/format";
import { ClusterEditor } from "./ClusterEditor";
import { CLUSTER_GROUP, type FileFieldsProps } from "./fields";
import { missing } from "./ModelField";
import styles from "./NewPlan.module.css";

/** On which devices: a cluster of the catalogue scaled to a count, or a document of one's own. */
export function ClusterField({ draft, documents, change, findings, openFiles }: FileFieldsProps) {
  const { data: clusters = [] } = useQuery(clustersQuery);
  const queries = useQueryClient();
  const own =
    draft.clusterFile && documents.cluster?.name === draft.clusterFile ? documents.cluster : undefined;
  const chosen = draft.clusterFile ? undefined : clusters.find((each) => each.name === draft.cluster);
  const edit = async () => {
    const { document } = await queries.fetchQuery(clusterQuery(draft.cluster));
    const name = `${draft.cluster}, changed`;
    change({ clusterFile: name }, { cluster: { name, content: document } });
  };
  return (
    <fieldset className={styles.group} id={CLUSTER_GROUP} tabIndex={-1}>
      <legend>Cluster</legend>
      {draft.clusterFile ? (
        <Field label="Cluster document" findings={missing(draft.clusterFile, documents.cluster?.name)}>
          {(control) => <output {...control}>{draft.clusterFile}</output>}
        </Field>
      ) : (
        <Field label="Cluster" findings={findings.cluster}>
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
      <TextField
        label="Devices"
        note="Empty = as many as the document says"
        numeric
        value={draft.devices}
        onChange={(devices) => change({ devices })}
        findings={findings.devices}
      />
      <div className={styles.files}>
        {draft.clusterFile && <Button onClick={() => change({ clusterFile: "" })}>Use the catalogue</Button>}
        {chosen && <Button onClick={() => void edit()}>Change its figures</Button>}
        <FileButton label="Open cluster document or topology" several onFiles={openFiles} />
      </div>
      {chosen && <Facts cluster={chosen} />}
      {own && (
        <ClusterEditor
          content={own.content}
          onChange={(content) => change({}, { cluster: { ...own, content } })}
          findings={findings.cluster}
        />
      )}
      {own?.notes && <Notes notes={own.notes} />}
    </fieldset>
  );
}

/** Of a cluster that topology files completed. */
function Notes({ notes }: { notes: readonly string[] }) {
  return (
    <details className={styles.notes}>
      <summary>Where each value came from ({count(notes.length)})</summary>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </details>
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
