import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { modelQuery } from "../../api/queries/catalogue";
import { DataTable } from "../../components/DataTable";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { count, moment } from "../../lib/format";
import { layerRows, type ModelDocument } from "./layers";
import styles from "./Models.module.css";

/** One model: what its layers are made of, and how many there are of each kind. */
export function ModelDetail({ name }: { name: string }) {
  const found = useQuery(modelQuery(name));
  if (found.error) return <ProblemNotice error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading label={name} height={260} lines={5} />;
  const { builtin, created_at, version } = found.data;
  const model = found.data.document as unknown as ModelDocument;
  return (
    <>
      <h2>{name}</h2>
      <p className={styles.soft}>
        {builtin ? "Built in; it never changes." : `Version ${version}, stored ${moment(created_at)}.`}{" "}
        {`Vocabulary of ${count(model.vocab_size)}; the head ${model.tie_embeddings ? "is" : "is not"} the embedding. `}
        <Link to="/" search={{ model: name }}>
          Plan it
        </Link>
        {" \u00b7 "}
        <Link to="/plans" search={{ model: name }}>
          Its plans
        </Link>
      </p>
      <DataTable
        caption="What the layers are made of"
        columns={[
          { name: "layers", title: "Layers", number: true, cell: (row) => count(row.count) },
          { name: "mixer", title: "Mixes tokens", wraps: true, cell: (row) => row.mixer },
          { name: "channels", title: "Mixes channels", wraps: true, cell: (row) => row.channels },
        ]}
        rows={layerRows(model)}
        rowKey={(row) => row.kind}
      />
    </>
  );
}
