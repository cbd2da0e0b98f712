/** A step whose every time is a closed form: all forwards, then all backwards, with a hop between ranks. */

import { columnsOf, type StepColumns, type StepView } from "./columns";

export const FORWARD_NS = 10_000;
export const BACKWARD_NS = 20_000;
export const HOP_NS = 3_000;

const FORWARD = 0;
const BACKWARD = 1;

export const forwardStart_ns = (rank: number, microbatch: number) =>
  rank * (FORWARD_NS + HOP_NS) + microbatch * FORWARD_NS;

export function gpipeView(ranks: number, microbatches: number): StepView {
  const turn_ns = forwardStart_ns(ranks - 1, microbatches - 1) + FORWARD_NS;
  const backwardStart_ns = (rank: number, microbatch: number) =>
    turn_ns + (ranks - 1 - rank) * (BACKWARD_NS + HOP_NS) + microbatch * BACKWARD_NS;
  const each = Array.from({ length: microbatches }, (_, microbatch) => microbatch);
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  const actions = all.flatMap((rank) => [
    ...each.map((mb) => ({ rank, kind: FORWARD, mb, start: forwardStart_ns(rank, mb), length: FORWARD_NS })),
    ...each.map((mb) => ({
      rank,
      kind: BACKWARD,
      mb,
      start: backwardStart_ns(rank, mb),
      length: BACKWARD_NS,
    })),
  ]);
  const sent = actions.filter(({ rank, kind }) => (kind === FORWARD ? rank < ranks - 1 : rank > 0));
  const makespan_ns = Math.max(...all.map((rank) => backwardStart_ns(rank, microbatches - 1) + BACKWARD_NS));
  const busy_ns = microbatches * (FORWARD_NS + BACKWARD_NS);
  const place = (rank: number, kind: number, mb: number) => (rank * 2 + kind) * microbatches + mb;
  const last = ranks - 1;
  return {
    schema_version: 1,
    plan_id: "0".repeat(64),
    num_ranks: ranks,
    kinds: ["forward", "backward", "input gradient", "weight gradient"],
    holders: ["nothing", "own rank", "result"],
    makespan_ns,
    after_ns: 1_000,
    bubble_fraction: 1 - busy_ns / makespan_ns,
    busy_ns: all.map(() => busy_ns),
    bubble_ns: all.map(() => makespan_ns - busy_ns),
    actions: {
      offsets: [...all, ranks].map((rank) => rank * 2 * microbatches),
      kind: actions.map((action) => action.kind),
      chunk: actions.map((action) => action.rank),
      microbatch: actions.map((action) => action.mb),
      start_ns: actions.map((action) => action.start),
      end_ns: actions.map((action) => action.start + action.length),
      uses: actions.map(({ rank, kind, mb }) =>
        kind === FORWARD
          ? rank === 0
            ? -1
            : place(rank - 1, FORWARD, mb)
          : rank === last
            ? place(last, FORWARD, mb)
            : place(rank + 1, BACKWARD, mb),
      ),
      // The first forward and the first backward of a rank wait for their neighbour, but where there is none.
      held_by: actions.map(({ rank, kind, mb }) =>
        mb === 0 && (kind === FORWARD ? rank > 0 : rank < last) ? 2 : mb === 0 && kind === FORWARD ? 0 : 1,
      ),
    },
    transfers: {
      from_rank: sent.map((action) => action.rank),
      to_rank: sent.map((action) => action.rank + (action.kind === FORWARD ? 1 : -1)),
      microbatch: sent.map((action) => action.mb),
      gradient: sent.map((action) => action.kind === BACKWARD),
      start_ns: sent.map((action) => action.start + action.length),
      end_ns: sent.map((action) => action.start + action.length + HOP_NS),
    },
    critical: [
      ...all.map((rank) => place(rank, FORWARD, 0)),
      ...each.slice(1).map((mb) => place(last, FORWARD, mb)),
      ...each.map((mb) => place(last, BACKWARD, mb)),
      ...all
        .slice(0, -1)
        .reverse()
        .map((rank) => place(rank, BACKWARD, microbatches - 1)),
    ],
    memory_limit_bytes: 1_000 + microbatches,
    memory: all.map((rank) => ({
      resident_bytes: 100,
      at_ns: [
        ...each.map((mb) => forwardStart_ns(rank, mb)),
        ...each.map((mb) => backwardStart_ns(rank, mb) + BACKWARD_NS),
      ],
      chunks_held: [...each.map((mb) => mb + 1), ...each.map((mb) => microbatches - mb - 1)],
      activation_bytes: [...each.map((mb) => mb + 1), ...each.map((mb) => microbatches - mb - 1)],
    })),
  };
}

export function gpipe(ranks: number, microbatches: number): StepColumns {
  return columnsOf(gpipeView(ranks, microbatches));
}
