import { useMutation } from "@tanstack/react-query";
import { traceOf } from "../../../api/queries/step";
import { Button } from "../../../components/Button";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { shortId } from "../../../lib/format";
import styles from "./Timeline.module.css";

/** The same step as a file for Perfetto.  It is never sent anywhere: whoever wants to look opens it there. */
export function TraceDownload({ planId }: { planId: string }) {
  const download = useMutation({
    mutationFn: () => traceOf(planId),
    onSuccess: (trace) => save(trace, `${shortId(planId)}-step.json`),
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

function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser has begun to read by the next turn.
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}
