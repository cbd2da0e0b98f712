import { useMutation } from "@tanstack/react-query";
import { traceOf } from "../../../api/queries/step";
import { Button } from "../../../components/Button";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { shortId } from "../../../lib/format";
import { saveFile } from "../../../lib/save";
import styles from "./Timeline.module.css";

/** The same step as a file for Perfetto.  It is never sent anywhere: whoever wants to look opens it there. */
export function TraceDownload({ planId }: { planId: string }) {
  const download = useMutation({
    mutationFn: () => traceOf(planId),
    onSuccess: (trace) => saveFile(`${shortId(planId)}-step.json`, trace),
  });
  return (
    <div className={styles.trace}>
      <span>To open it in Perfetto, drag the file onto its page.</span>
      <Button disabled={download.isPending} onClick={() => download.mutate()}>
        {download.isPending ? "Preparing the trace…" : "Download trace"}
      </Button>
      {download.error && <ProblemNotice error={download.error} onRetry={() => download.mutate()} />}
    </div>
  );
}
