import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { downloadEmission, emissionQuery } from "../../api/queries/emissions";
import { Button } from "../../components/Button";
import { ChoiceField, TextField } from "../../components/ChoiceField";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { saveFile } from "../../lib/save";
import { useSettled } from "../../lib/settled";
import { EmissionNotes } from "./files/EmissionNotes";
import styles from "./files/Files.module.css";
import { FileView } from "./files/FileView";
import { LaunchCommand } from "./files/LaunchCommand";
import { EMIT_TARGETS, LAUNCHERS, readFilesSearch } from "./files.search";

const VERSION_AFTER_MS = 400;

/** Launch files for a target: to read, copy and take along, with what the target runs differently. */
export function Files() {
  const { planId } = useParams({ from: "/plans/$planId" });
  const chosen = readFilesSearch.full(useSearch({ from: "/plans/$planId/files" }));
  const navigate = useNavigate();
  const version = useSettled(chosen.version, VERSION_AFTER_MS);
  const choice = { target: chosen.target, launcher: chosen.launcher, version };
  const emission = useQuery(emissionQuery(planId, choice));
  const download = useMutation({
    mutationFn: () => downloadEmission(planId, choice),
    onSuccess: ({ name, content }) => saveFile(name, content),
  });
  const choose = (part: Partial<typeof chosen>, replace = false) => {
    const search = readFilesSearch({ ...chosen, ...part });
    void navigate({ to: "/plans/$planId/files", params: { planId }, search, replace, resetScroll: false });
  };
  return (
    <div className={styles.screen}>
      <div className={styles.choices}>
        <ChoiceField
          label="Software"
          value={chosen.target}
          choices={EMIT_TARGETS}
          onChange={(target) => choose({ target, version: "", file: "" })}
        />
        <ChoiceField
          label="Launcher"
          value={chosen.launcher}
          choices={LAUNCHERS}
          onChange={(launcher) => choose({ launcher, file: "" })}
        />
        <TextField
          label="Release"
          placeholder={String(emission.data?.manifest.target_version ?? "")}
          value={chosen.version}
          onChange={(typed) => choose({ version: typed }, true)}
        />
        <Button
          look="primary"
          disabled={!emission.data || download.isPending}
          onClick={() => download.mutate()}
        >
          Download folder
        </Button>
      </div>
      {download.error && <ProblemNotice error={download.error} />}
      {emission.isPending && <Loading label="launch files" height={520} lines={8} />}
      {emission.error && <ProblemNotice error={emission.error} onRetry={() => void emission.refetch()} />}
      {emission.data && (
        <>
          <LaunchCommand emission={emission.data} />
          <FileView files={emission.data.files} open={chosen.file} onOpen={(file) => choose({ file })} />
          <EmissionNotes emission={emission.data} />
        </>
      )}
    </div>
  );
}
