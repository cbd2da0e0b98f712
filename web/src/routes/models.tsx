import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ModelRow, modelsQuery } from "../api/queries/catalogue";
import type { Column } from "../components/DataTable";
import { Empty } from "../components/Empty";
import { Loading } from "../components/Loading";
import { PageHead } from "../components/PageHead";
import { ProblemNotice } from "../components/ProblemNotice";
import { compact, count } from "../lib/format";
import { Shelf } from "./clusters/Shelf";
import { ModelDetail } from "./models/ModelDetail";
import styles from "./models/Models.module.css";
import { type ModelsSearch, readModelsSearch } from "./models.search";

const COLUMNS: readonly Column<ModelRow>[] = [
  { name: "parameters", title: "Parameters", number: true, cell: (row) => compact(row.parameters) },
  {
    name: "active",
    title: "Active a token",
    number: true,
    cell: (row) => (row.active_parameters === row.parameters ? "all" : compact(row.active_parameters)),
  },
  { name: "layers", title: "Layers", number: true, cell: (row) => count(row.num_layers) },
  { name: "hidden", title: "Hidden", number: true, cell: (row) => count(row.hidden_size) },
  {
    name: "experts",
    title: "Experts",
    number: true,
    cell: (row) => row.num_experts > 0 && count(row.num_experts),
  },
  {
    name: "context",
    title: "Positions",
    number: true,
    cell: (row) => (row.max_sequence_length === null ? "no end" : count(row.max_sequence_length)),
  },
  { name: "family", title: "Family", cell: (row) => row.family },
  { name: "whose", title: "From", cell: (row) => (row.builtin ? "built in" : "stored") },
];

/** Every model that a question can name, with its sizes; what its layers are made of beside it. */
export function Models() {
  const search = readModelsSearch.full(useSearch({ from: "/models" }));
  const navigate = useNavigate();
  const write = (part: Partial<ModelsSearch>) =>
    void navigate({ to: "/models", search: (before) => ({ ...before, ...part }), resetScroll: false });
  const listed = useQuery(modelsQuery);
  const wanted = search.name.toLowerCase();
  const rows = (listed.data ?? []).filter((row) =>
    `${row.name} ${row.family}`.toLowerCase().includes(wanted),
  );
  return (
    <>
      <PageHead title="Models">
        <label className={styles.filter}>
          Name or family
          <input
            type="search"
            value={search.name}
            onChange={(event) => write({ name: event.target.value || undefined })}
          />
        </label>
      </PageHead>
      {listed.error && <ProblemNotice error={listed.error} onRetry={() => void listed.refetch()} />}
      {listed.isPending && <Loading label="models" height={500} lines={12} />}
      {listed.isSuccess && rows.length === 0 && (
        <Empty title="No model has this name">
          <p>A config.json is dropped on the page New plan; an administrator stores it under a name.</p>
        </Empty>
      )}
      {rows.length > 0 && (
        <Shelf
          noun="model"
          group="Models"
          caption="Built-in and stored models, with their sizes"
          rows={rows}
          columns={COLUMNS}
          chosen={search.model}
          onChoose={(model) => write({ model })}
        >
          <ModelDetail name={search.model} />
        </Shelf>
      )}
    </>
  );
}
