import type { JobRecord } from "../../api/queries/jobs";
import styles from "./Job.module.css";

type Shown = Pick<JobRecord, "status" | "result_kind" | "progress" | "cancel_requested">;

const CANCELLED: Partial<Record<Shown["result_kind"], string>> = {
  plan: "cancelled, best plan kept",
  fleet: "cancelled, shared by what was known",
};

/** A mark, a colour and words for where a job stands. */
export function describeJob(job: Shown): {
  mark: string;
  words: string;
  look: "good" | "bad" | "warn" | "none";
} {
  switch (job.status) {
    case "queued":
      return { mark: "\u25cb", words: "queued", look: "none" };
    case "running":
      return { mark: "\u25d0", words: job.cancel_requested ? "ending" : job.progress.phase, look: "none" };
    case "succeeded":
      return job.result_kind === "infeasible"
        ? { mark: "\u2205", words: "no plan fits", look: "warn" }
        : { mark: "\u2713", words: "done", look: "good" };
    case "failed":
      return { mark: "\u2715", words: "failed", look: "bad" };
    case "cancelled":
      return {
        mark: "\u2013",
        words: CANCELLED[job.result_kind] ?? "cancelled",
        look: "warn",
      };
  }
}

export function JobState({ job }: { job: Shown }) {
  const { mark, words, look } = describeJob(job);
  return (
    <span className={`${styles.state} ${look === "none" ? "" : styles[look]}`}>
      <span className={styles.mark} aria-hidden="true">
        {mark}
      </span>
      {words}
    </span>
  );
}
