import { useMutation } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { asProblem, findingsAt } from "../../api/problem";
import { diagnose } from "../../api/queries/diagnosis";
import { Button } from "../../components/Button";
import { ChosenFiles } from "../../components/ChosenFiles";
import { CopyLine } from "../../components/CopyLine";
import { FileButton } from "../../components/FileButton";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { withFiles } from "../../lib/chosenFiles";
import { useFileDrop } from "../../lib/fileDrop";
import { shortId } from "../../lib/format";
import styles from "./diagnose/Diagnose.module.css";

/** Shown once files were read. */
const Answer = lazy(async () => ({ default: (await import("./diagnose/Answer")).Answer }));

/** Why is the real run slower than the plan?  Its logs and traces say, beside the plan. */
export function DiagnoseTab() {
  const { planId } = useParams({ from: "/plans/$planId/diagnose" });
  const [files, setFiles] = useState<readonly File[]>([]);
  const reading = useMutation({ mutationFn: (chosen: readonly File[]) => diagnose(planId, chosen) });
  const choose = (chosen: readonly File[]) => {
    // What was answered was about other files.
    reading.reset();
    setFiles(chosen);
  };
  const add = (added: readonly File[]) => choose(withFiles(files, added));
  const held = useFileDrop(add);
  const findings = reading.error ? (asProblem(reading.error).errors ?? []) : [];
  const ofFiles = findingsAt(findings, "/files");
  return (
    <div className={styles.screen}>
      <section
        className={held ? `${styles.ask} ${styles.held}` : styles.ask}
        aria-labelledby="diagnose-heading"
      >
        <h2 id="diagnose-heading">Why is the real run slower than the plan?</h2>
        <p>
          Drop what a run of this plan left behind: its training log, and Kineto traces of one or more ranks.
          They are compressed here, and a request carries 2&nbsp;MiB; larger traces are read where they lie:
        </p>
        <CopyLine
          text={`meshwright diagnose ${shortId(planId)} train.log traces/ --server ${window.location.origin}`}
        />
        <ChosenFiles files={files} findings={ofFiles} onChange={choose} />
        <div className={styles.buttons}>
          <FileButton label="Choose files" several onFiles={add} />
          <Button
            look="primary"
            disabled={files.length === 0 || reading.isPending}
            onClick={() => reading.mutate(files)}
          >
            {reading.isPending ? "Reading…" : "Compare with the plan"}
          </Button>
        </div>
      </section>
      {reading.error && <ProblemNotice error={reading.error} shownElsewhere={ofFiles} />}
      {reading.isPending && <Loading label="diagnosis" height={320} lines={5} />}
      {reading.data && (
        <Suspense fallback={<Loading label="diagnosis" height={320} lines={5} />}>
          <Answer diagnosis={reading.data} planId={planId} />
        </Suspense>
      )}
    </div>
  );
}
