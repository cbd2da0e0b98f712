import { useMutation } from "@tanstack/react-query";
import { traceOf } from "../../../api/queries/step";
import { Button } from "../../../components/Button";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { shortId } from "../../../lib/format";
import { saveFile } from "../../../lib/save";
import styles from "./Timeline.module.css";

const PERFETTO = "https://ui.perfetto.dev";

/** The same step for Perfetto: in its page in a new tab, or as a file to open where there is no internet. */
export function TraceActions({ planId }: { planId: string }) {
  const title = `${shortId(planId)}-step`;
  const download = useMutation({
    mutationFn: () => traceOf(planId),
    onSuccess: (trace) => saveFile(`${title}.json`, trace),
  });
  const open = useMutation({
    mutationFn: async () => {
      // Before anything is waited for: a browser opens a tab only in answer to a press.
      const tab = window.open(PERFETTO);
      if (!tab) throw new Error("the browser opened no new tab");
      const [{ handOver }, trace] = await Promise.all([import("../../../lib/perfetto"), traceOf(planId)]);
      await handOver(tab, PERFETTO, trace, title);
    },
  });
  return (
    <div className={styles.trace}>
      <Button
        disabled={open.isPending}
        title={`Opens ${PERFETTO}; the trace goes from tab to tab and stays in this browser`}
        onClick={() => open.mutate()}
      >
        {open.isPending ? "Handing over…" : "Open in Perfetto"}
      </Button>
      <Button disabled={download.isPending} onClick={() => download.mutate()}>
        {download.isPending ? "Preparing the trace…" : "Download trace"}
      </Button>
      {open.error && (
        <p role="alert" className={styles.traceFault}>
          {open.error.message}. Download the trace, and drag it onto any Perfetto page.
        </p>
      )}
      {download.error && <ProblemNotice error={download.error} onRetry={() => download.mutate()} />}
    </div>
  );
}
