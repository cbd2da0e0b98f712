/**
 * How is a question asked again and again while it changes?  One at a time: what comes while an answer is on its way
 * waits, and only the newest of those that wait is asked.  Answers therefore keep coming while somebody drags, and no
 * queue builds up behind the hand.
 */

export interface Latest<Q> {
  ask: (question: Q) => void;
  stop: () => void;
}

interface Watcher<Q, A> {
  answered: (question: Q, answer: A) => void;
  refused: (question: Q, error: unknown) => void;
  /** Whether an answer is on its way. */
  busy: (busy: boolean) => void;
}

/** A stale question is given up when its answer takes longer than this while a newer one waits. */
const PATIENCE_MS = 500;

export function latest<Q, A>(
  fetch: (question: Q, signal: AbortSignal) => Promise<A>,
  watcher: Watcher<Q, A>,
): Latest<Q> {
  let waiting: { question: Q } | undefined;
  let flight: { abort: AbortController; since: number; timer?: ReturnType<typeof setTimeout> } | undefined;
  let stopped = false;

  const giveUpLate = () => {
    if (!flight || flight.timer !== undefined) return;
    const { abort, since } = flight;
    flight.timer = setTimeout(() => abort.abort(), Math.max(0, PATIENCE_MS - (performance.now() - since)));
  };
  const next = () => {
    clearTimeout(flight?.timer);
    flight = undefined;
    if (stopped) return;
    if (!waiting) return watcher.busy(false);
    const { question } = waiting;
    waiting = undefined;
    begin(question);
  };
  const begin = (question: Q) => {
    const abort = new AbortController();
    flight = { abort, since: performance.now() };
    watcher.busy(true);
    fetch(question, abort.signal)
      .then(
        (answer) => stopped || abort.signal.aborted || watcher.answered(question, answer),
        (error: unknown) => stopped || abort.signal.aborted || watcher.refused(question, error),
      )
      .finally(next);
  };
  return {
    ask: (question) => {
      if (stopped) return;
      if (!flight) return begin(question);
      waiting = { question };
      giveUpLate();
    },
    stop: () => {
      stopped = true;
      clearTimeout(flight?.timer);
      flight?.abort.abort();
    },
  };
}
