/** What is drawn of a plan: its step, action by action, and its trace for Perfetto. */

import { queryOptions } from "@tanstack/react-query";
import type { StepColumns } from "../../charts/step/columns";
import { api, ask } from "../client";
import { staleTimeOf } from "./plans";

export const stepQuery = (plan: string) =>
  queryOptions({
    queryKey: ["plan", plan, "step"],
    queryFn: async ({ signal }) => {
      const params = { path: { plan } };
      return readBeside(
        await ask(api.GET("/v1/plans/{plan}/step", { params, signal, parseAs: "arrayBuffer" })),
        signal,
      );
    },
    staleTime: staleTimeOf(plan),
    // Columns are replaced as a whole; comparing them number by number would take longer than drawing.
    structuralSharing: false,
  });

export async function traceOf(plan: string): Promise<Blob> {
  return ask(api.GET("/v1/plans/{plan}/timeline", { params: { path: { plan } }, parseAs: "blob" }));
}

function readBeside(answer: ArrayBuffer, signal: AbortSignal): Promise<StepColumns> {
  const worker = new Worker(new URL("../stepWorker.ts", import.meta.url), { type: "module" });
  const read = new Promise<StepColumns>((resolve, reject) => {
    worker.onmessage = (message: MessageEvent<StepColumns>) => resolve(message.data);
    worker.onerror = (event) => reject(new Error(event.message || "the step could not be read"));
    signal.addEventListener("abort", () => reject(signal.reason));
    worker.postMessage(answer, [answer]);
  });
  return read.finally(() => worker.terminate());
}
