/** What are the numbers of what is chosen now?  The last answer stays until the next one is there. */

import { useEffect, useMemo, useRef, useState } from "react";
import { type Estimate, type EstimateQuestion, fetchEstimate } from "../../../api/queries/estimates";
import { type Latest, latest } from "../../../lib/latest";

export interface LiveEstimate {
  /** The newest good answer; of an older question while a newer one is asked or was refused. */
  readonly answer: Estimate | undefined;
  /** Key of the question that `answer` answers. */
  readonly answered: string | undefined;
  /** Why the present question has no answer. */
  readonly error: unknown;
  readonly busy: boolean;
}

interface Asked {
  readonly key: string;
  readonly question: EstimateQuestion;
}

/** Answers to keep: dragging back and forth asks nothing twice. */
const MOST_KEPT = 300;

export function useLiveEstimate(key: string, question: EstimateQuestion): LiveEstimate {
  const [answer, setAnswer] = useState<{ key: string; estimate: Estimate }>();
  const [refusal, setRefusal] = useState<{ key: string; error: unknown }>();
  const [busy, setBusy] = useState(true);
  const kept = useRef(new Map<string, Estimate>());
  const line = useRef<Latest<Asked>>(undefined);
  const asked = useMemo(() => ({ key, question }), [key, question]);

  useEffect(() => {
    const answers = kept.current;
    line.current = latest<Asked, Estimate>((each, signal) => fetchEstimate(each.question, signal), {
      answered: ({ key: of }, estimate) => {
        if (answers.size >= MOST_KEPT) answers.delete(answers.keys().next().value ?? "");
        answers.set(of, estimate);
        setAnswer({ key: of, estimate });
      },
      refused: ({ key: of }, error) => setRefusal({ key: of, error }),
      busy: setBusy,
    });
    return () => line.current?.stop();
  }, []);

  useEffect(() => {
    const known = kept.current.get(asked.key);
    if (known) setAnswer({ key: asked.key, estimate: known });
    else line.current?.ask(asked);
  }, [asked]);

  return {
    answer: answer?.estimate,
    answered: answer?.key,
    error: refusal?.key === key && answer?.key !== key ? refusal.error : undefined,
    busy,
  };
}
