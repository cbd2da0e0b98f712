import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { backendsQuery } from "../../api/queries/catalogue";
import { downloadEmission, emissionQuery } from "../../api/queries/emissions";
import { planQuery } from "../../api/queries/plans";
import { Button } from "../../components/Button";
import { Empty } from "../../components/Empty";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { ownOffer } from "../../lib/backends";
import { saveFile } from "../../lib/save";
import { EmissionNotes } from "./files/EmissionNotes";
import { FileChoices } from "./files/FileChoices";
import styles from "./files/Files.module.css";
import { FileView } from "./files/FileView";
import { LaunchCommand } from "./files/LaunchCommand";
import { PlannedThere } from "./files/PlannedThere";
import { SearchedThere } from "./files/SearchedThere";
import { readFilesSearch } from "./files.search";

/** Launch files of the plan, or of the same question's best plan in another back-end: to read, copy and take along. */
export function Files() {
  const { planId } = useParams({ from: "/plans/$planId" });
  const chosen = readFilesSearch.full(useSearch({ from: "/plans/$planId/files" }));
  const navigate = useNavigate();
  const { data: plan } = useQuery(planQuery(planId));
  const known = useQuery(backendsQuery);
  const own = plan && ownOffer(known.data ?? [], plan);
  const predictedOnly = chosen.backend === "" && own?.writesFiles === false;
  const emission = useQuery({ ...emissionQuery(planId, chosen), enabled: !predictedOnly });
  const download = useMutation({
    mutationFn: () => downloadEmission(planId, chosen),
    onSuccess: ({ name, content }) => saveFile(name, content),
  });
  const choose = (part: Partial<typeof chosen>) => {
    const search = readFilesSearch({ ...chosen, ...part });
    void navigate({ to: "/plans/$planId/files", params: { planId }, search, resetScroll: false });
  };
  if (!plan) return null;
  const found = emission.data && "files" in emission.data ? emission.data.files : undefined;
  return (
    <div className={styles.screen}>
      <div className={styles.choices}>
        <FileChoices plan={plan} chosen={chosen} choose={choose} />
        <Button look="primary" disabled={!found || download.isPending} onClick={() => download.mutate()}>
          Download folder
        </Button>
      </div>
      {download.error && <ProblemNotice error={download.error} />}
      {predictedOnly && (
        <Empty title={`${own.words} predicts only`}>
          <p>
            No launch files are written for it. Choose another back-end above: the same question is planned
            there, and the files are of that plan.
          </p>
        </Empty>
      )}
      {emission.isPending && !predictedOnly && <Loading label="launch files" height={520} lines={8} />}
      {emission.error && !predictedOnly && !known.isPending && (
        <ProblemNotice error={emission.error} onRetry={() => void emission.refetch()} />
      )}
      {emission.data && "job" in emission.data && (
        <SearchedThere job={emission.data.job} onFound={() => void emission.refetch()} />
      )}
      {found && (
        <>
          <LaunchCommand emission={found} />
          <PlannedThere emission={found} />
          <FileView files={found.files} open={chosen.file} onOpen={(file) => choose({ file })} />
          <EmissionNotes emission={found} />
        </>
      )}
    </div>
  );
}
