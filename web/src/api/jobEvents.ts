/** What happens to a job, live?  Its events from the first one on; after a broken connection it goes on where it was. */

import { useEffect, useState } from "react";
import { readEvents } from "../lib/eventStream";
import { authorizedFetch, type Schemas } from "./client";
import { hasEnded, type JobStatus } from "./queries/jobs";

/** One thing that happened; the OpenAPI document describes the stream as text. */
export interface JobEvent {
  readonly seq: number;
  readonly at: string;
  readonly status: JobStatus;
  readonly progress: Schemas["JobProgress"];
}

const PAUSES_MS = [500, 1_000, 2_000, 5_000];

async function watch(
  job: string,
  after: number,
  signal: AbortSignal,
  add: (event: JobEvent) => void,
): Promise<void> {
  const address = new URL(`/v1/jobs/${encodeURIComponent(job)}/events`, window.location.origin);
  const headers = after > 0 ? { "Last-Event-ID": String(after) } : undefined;
  const response = await authorizedFetch(new Request(address, { headers, signal }));
  if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
  for await (const event of readEvents(response.body)) add(JSON.parse(event.data) as JobEvent);
}

export interface JobEvents {
  readonly events: readonly JobEvent[];
  /** False between two connections. */
  readonly connected: boolean;
}

/** The events of a job so far; the page is drawn again with each. */
export function useJobEvents(job: string): JobEvents {
  const [events, setEvents] = useState<readonly JobEvent[]>([]);
  const [connected, setConnected] = useState(true);
  useEffect(() => {
    const abort = new AbortController();
    let [last, failures]: [JobEvent | undefined, number] = [undefined, 0];
    setEvents([]);
    const add = (event: JobEvent) => {
      [last, failures] = [event, 0];
      setConnected(true);
      setEvents((before) => [...before, event]);
    };
    const follow = async () => {
      while (!abort.signal.aborted && !(last && hasEnded(last))) {
        await watch(job, last?.seq ?? 0, abort.signal, add).catch(() => {});
        if (abort.signal.aborted || (last && hasEnded(last))) return;
        setConnected(false);
        await pause(PAUSES_MS[Math.min(failures++, PAUSES_MS.length - 1)] ?? 0, abort.signal);
      }
    };
    void follow();
    return () => abort.abort();
  }, [job]);
  return { events, connected };
}

function pause(forMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, forMs);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", end, { once: true });
  });
}
