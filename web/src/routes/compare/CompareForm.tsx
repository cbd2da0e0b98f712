import { useQuery } from "@tanstack/react-query";
import { type Finding, findingsAt } from "../../api/problem";
import { clustersQuery, modelsQuery } from "../../api/queries/catalogue";
import { BackEndField } from "../../components/BackEndField";
import { ChoiceField, TextField } from "../../components/ChoiceField";
import { FindingList } from "../../components/Field";
import { type CompareSearch, MOST_CLUSTERS } from "../compare.search";
import { PRECISIONS } from "../new-plan.search";
import { ClusterPicks } from "./ClusterPicks";
import styles from "./Compare.module.css";
import { tokensOf } from "./curves";

interface Props {
  search: CompareSearch;
  write: (part: Partial<CompareSearch>) => void;
  findings: readonly Finding[];
}

/** Only this page knows of them: the API gives rates. */
function tokenFindings(text: string): readonly Finding[] {
  if (text.trim() === "" || tokensOf(text) !== undefined) return [];
  return [{ pointer: "", detail: "is no number above 0", hint: "write it as 15e12" }];
}

const PLACED = [
  "/model",
  "/workload",
  "/device_counts",
  "/cluster",
  "/price_per_device_hour",
  "/constraints/backends",
];

/** What is compared: one model and workload, clusters with their prices, device counts. */
export function CompareForm({ search, write, findings }: Props) {
  const { data: models = [] } = useQuery(modelsQuery);
  const { data: clusters = [] } = useQuery(clustersQuery);
  const names = models.map((each) => each.name);
  const rest = findings.filter((each) => !PLACED.some((place) => each.pointer.startsWith(place)));
  const field = (pointer: string) => findingsAt(findings, pointer);
  return (
    <form className={styles.form} onSubmit={(event) => event.preventDefault()} noValidate>
      <div className={styles.fields}>
        <ChoiceField
          label="Model"
          value={search.model}
          choices={names.includes(search.model) ? names : [search.model, ...names]}
          onChange={(model) => write({ model })}
          findings={field("/model")}
        />
        <TextField
          label="Global batch size"
          numeric
          value={search.batch}
          onChange={(batch) => write({ batch })}
          findings={field("/workload/global_batch_size")}
        />
        <TextField
          label="Sequence length"
          numeric
          value={search.seq}
          onChange={(seq) => write({ seq })}
          findings={field("/workload/sequence_length")}
        />
        <ChoiceField
          label="Precision"
          value={search.precision}
          choices={PRECISIONS}
          onChange={(precision) => write({ precision })}
          findings={field("/workload/precision")}
        />
        <TextField
          label="Device counts"
          value={search.counts}
          onChange={(counts) => write({ counts })}
          findings={field("/device_counts")}
        />
        <TextField
          label="Tokens to train"
          note="such as 15e12: gives days and money"
          numeric
          value={search.tokens}
          onChange={(tokens) => write({ tokens })}
          findings={tokenFindings(search.tokens)}
        />
        <div className={styles.backend}>
          <BackEndField
            value={search.backend}
            onChange={(backend) => write({ backend })}
            findings={field("/constraints/backends")}
          />
        </div>
      </div>
      <ClusterPicks
        search={search}
        write={write}
        names={clusters.map((each) => each.name)}
        most={MOST_CLUSTERS}
        findings={[...field("/cluster"), ...field("/price_per_device_hour")]}
      />
      <FindingList findings={rest} />
    </form>
  );
}
