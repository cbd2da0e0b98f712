import { useNavigate } from "@tanstack/react-router";
import type { JobRecord } from "../../api/queries/jobs";
import { lastTyped } from "../new-plan/draft";
import { WaysOut } from "../new-plan/WaysOut";
import { readNewPlanSearch } from "../new-plan.search";

/** What would fit: back to the form with the change, where this browser still has the question; else in sentences. */
export function TypedWaysOut({ job, hints }: { job: JobRecord; hints: readonly string[] }) {
  const navigate = useNavigate();
  const { draft, documents } = lastTyped();
  const { subject } = job;
  const isTyped =
    subject != null &&
    [draft.devices, draft.batch, draft.seq].join() ===
      [subject.num_devices, subject.global_batch_size, subject.sequence_length].join() &&
    (draft.modelFile !== "" || draft.model === subject.model) &&
    (draft.clusterFile !== "" || draft.cluster === subject.cluster);
  if (!isTyped)
    return (
      <p>
        <strong>What would fit: </strong>
        {hints.join("; ")}
      </p>
    );
  return (
    <WaysOut
      hints={hints}
      draft={draft}
      documents={documents}
      onChoose={({ change }) =>
        void navigate({ to: "/", search: readNewPlanSearch({ ...draft, ...change }) })
      }
    />
  );
}
