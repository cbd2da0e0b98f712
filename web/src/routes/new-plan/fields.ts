/** What every group of fields gets. */

import type { Draft } from "../new-plan.search";
import type { Documents } from "./question";

export interface FieldsProps {
  draft: Draft;
  documents: Documents;
  change: (part: Partial<Draft>) => void;
}
