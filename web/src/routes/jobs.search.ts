import { flag, oneOf, searchReader, text } from "../lib/search";

export const JOB_STATUSES = ["all", "queued", "running", "succeeded", "failed", "cancelled"] as const;

/** Which jobs are listed; `before` is the last job of the page before. */
export const readJobsSearch = searchReader({
  status: oneOf(JOB_STATUSES, "all"),
  mine: flag(),
  before: text(),
});
