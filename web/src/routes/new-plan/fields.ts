/** What every group of fields gets. */

import type { Draft } from "../new-plan.search";
import type { DraftState } from "./draft";
import type { PlacedFindings } from "./pointers";
import type { Documents } from "./question";

export interface FieldsProps {
  draft: Draft;
  documents: Documents;
  change: DraftState["change"];
  findings: PlacedFindings;
}

export interface FileFieldsProps extends FieldsProps {
  openFiles: (files: readonly File[]) => void;
}
