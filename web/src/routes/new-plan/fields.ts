/** What every group of fields gets. */

import type { Draft } from "../new-plan.search";
import type { DraftState } from "./draft";
import type { PlacedFindings } from "./pointers";
import type { Documents } from "./question";

/** Where a reader goes on when files became the cluster. */
export const CLUSTER_GROUP = "cluster-group";

export interface FieldsProps {
  draft: Draft;
  documents: Documents;
  change: DraftState["change"];
  findings: PlacedFindings;
}

export interface FileFieldsProps extends FieldsProps {
  openFiles: (files: readonly File[]) => void;
}
