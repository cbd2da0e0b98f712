/** What becomes of a launch script that is dropped or opened?  It is read by the service, and fills the draft in. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { readScript, type ScriptAnswer } from "../../api/queries/scripts";
import { type Draft, OPTIMIZERS, PRECISIONS } from "../new-plan.search";
import type { DraftState } from "./draft";
import type { Documents, DroppedScript, DroppedText } from "./question";

export interface ScriptState {
  /** The script whose model the draft has, or that waits for what would make it readable. */
  readonly shown: DroppedText | undefined;
  readonly read: DroppedScript | undefined;
  readonly error: Error | null;
  readonly isPending: boolean;
  readonly open: (dropped: DroppedText) => void;
  readonly leave: () => void;
}

export function useScript(draft: Draft, documents: Documents, change: DraftState["change"]): ScriptState {
  const [waiting, setWaiting] = useState<DroppedText | undefined>(undefined);
  const reading = useMutation({
    mutationFn: async (dropped: DroppedText) => ({ dropped, answer: await readScript(dropped) }),
    onSuccess: ({ dropped, answer }) => {
      setWaiting(undefined);
      change(...filledIn(dropped, answer));
    },
  });
  const read = draft.modelFile && draft.modelFile === documents.script?.name ? documents.script : undefined;
  return {
    shown: waiting ?? read,
    read: waiting ? undefined : read,
    error: reading.error,
    isPending: reading.isPending,
    open: (dropped) => {
      setWaiting(dropped);
      reading.mutate(dropped);
    },
    leave: () => {
      setWaiting(undefined);
      reading.reset();
      if (read) change({ modelFile: "" });
    },
  };
}

/** The parts of the draft that a script says; what it does not say stays as it was typed. */
export function filledIn(
  { name, text, beside }: DroppedText,
  answer: ScriptAnswer,
): [Partial<Draft>, Documents] {
  const { model, ...facts } = answer;
  const { global_batch_size: batch, sequence_length: seq, precision, optimizer } = answer.workload;
  const said: Partial<Draft> = {
    modelFile: name,
    backend: answer.backend,
    batch: batch === undefined ? undefined : String(batch),
    seq: seq === undefined ? undefined : String(seq),
    devices: answer.devices == null ? undefined : String(answer.devices),
    precision: PRECISIONS.find((each) => each === precision),
    optimizer: OPTIMIZERS.find((each) => each === optimizer),
  };
  const part = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
  const content = model as unknown as Record<string, unknown>;
  return [part, { model: { name, content }, script: { name, text, beside, facts } }];
}
