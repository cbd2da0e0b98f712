/** What does a completed cluster become in the draft?  A document named after its files, with where its values come from. */

import type { ClusterCompletion } from "../../api/queries/uploads";
import { count } from "../../lib/format";
import type { DroppedDocument } from "./question";

export function completedDocument(answer: ClusterCompletion): DroppedDocument {
  const names = answer.files.map((each) => each.name);
  const more = names.length - 1;
  return {
    name: more > 0 ? `${names[0]} and ${count(more)} more` : (names[0] ?? answer.cluster.name),
    content: answer.cluster as unknown as Record<string, unknown>,
    notes: answer.notes,
  };
}
