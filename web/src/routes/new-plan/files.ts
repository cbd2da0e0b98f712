/** What becomes of files that are dropped or opened?  Documents go into the draft, scripts are read, the others wait. */

import { useState } from "react";
import type { ClusterCompletion } from "../../api/queries/uploads";
import { withFiles } from "../../lib/chosenFiles";
import { useFileDrop } from "../../lib/fileDrop";
import type { DraftState } from "./draft";
import { readDropped } from "./dropped";
import { CLUSTER_GROUP } from "./fields";
import type { DroppedText } from "./question";
import { completedDocument } from "./topology";

export interface FilesState {
  /** Why files could not be taken. */
  readonly faults: readonly string[];
  readonly held: boolean;
  /** They are not wanted after all: the question stays as it was. */
  readonly forgive: () => void;
  /** Topology files that wait. */
  readonly topology: readonly File[];
  readonly openFiles: (files: readonly File[]) => void;
  readonly setTopology: (files: readonly File[]) => void;
  /** The files are not wanted after all. */
  readonly leave: () => void;
  /** The files became a cluster: it is the draft's. */
  readonly completed: (answer: ClusterCompletion) => void;
}

export function useFiles(
  change: DraftState["change"],
  openScript: (dropped: DroppedText) => void,
): FilesState {
  const [faults, setFaults] = useState<readonly string[]>([]);
  const [topology, setTopology] = useState<readonly File[]>([]);
  const openFiles = (files: readonly File[]) =>
    void readDropped(files).then(({ documents, scripts, others, faults: found }) => {
      setFaults(found);
      setTopology((before) => withFiles(before, others));
      const names = { modelFile: documents.model?.name, clusterFile: documents.cluster?.name };
      change(Object.fromEntries(Object.entries(names).filter(([, name]) => name)), documents);
      const script = scripts.at(-1);
      if (script) openScript(script);
    });
  const leave = () => {
    setTopology([]);
    // The form that had the focus is gone with the next frame.
    requestAnimationFrame(() => document.getElementById(CLUSTER_GROUP)?.focus());
  };
  const completed = (answer: ClusterCompletion) => {
    const document = completedDocument(answer);
    leave();
    change({ clusterFile: document.name }, { cluster: document });
  };
  const forgive = () => setFaults([]);
  return {
    faults,
    forgive,
    held: useFileDrop(openFiles),
    topology,
    openFiles,
    setTopology,
    leave,
    completed,
  };
}
