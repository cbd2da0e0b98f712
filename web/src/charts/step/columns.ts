/**
 * How does a step lie in memory so that it is drawn quickly?  Typed columns, running sums, and what belongs together.
 *
 * Places count actions, rank after rank, as on the wire; rank r owns `offsets[r] .. offsets[r + 1]`, in order of time.
 */

import type { Schemas } from "../../api/client";

export type StepView = Schemas["StepView"];

/** Transfers, ordered by the rank that sends and by time; rank r owns `offsets[r] .. offsets[r + 1]`. */
export interface TransferColumns {
  readonly offsets: Int32Array;
  readonly to_rank: Int32Array;
  readonly microbatch: Int32Array;
  /** 1 = a gradient goes back, 0 = an activation goes forward. */
  readonly gradient: Uint8Array;
  readonly start_ns: Float64Array;
  readonly end_ns: Float64Array;
}

export interface RankMemory {
  readonly resident_bytes: number;
  readonly at_ns: Float64Array;
  readonly chunks_held: Int32Array;
  /** What is always there and the activations, from each moment on. */
  readonly bytes: Float64Array;
  readonly peak_bytes: number;
}

export interface StepColumns {
  readonly num_ranks: number;
  readonly num_microbatches: number;
  readonly kinds: readonly string[];
  readonly makespan_ns: number;
  readonly after_ns: number;
  readonly bubble_fraction: number;
  readonly busy_ns: readonly number[];
  readonly bubble_ns: readonly number[];
  readonly memory_limit_bytes: number;
  readonly offsets: Int32Array;
  readonly kind: Uint8Array;
  readonly chunk: Int32Array;
  readonly microbatch: Int32Array;
  readonly start_ns: Float64Array;
  readonly end_ns: Float64Array;
  /** The place of the action whose result each uses; -1 = none. */
  readonly uses: Int32Array;
  /** What came last before each, as a place of `holders`. */
  readonly held_by: Uint8Array;
  readonly holders: readonly string[];
  /** Of each kind, the time of all actions before a place: one longer than the actions. */
  readonly before_ns: readonly Float64Array[];
  readonly critical: Int32Array;
  /** 1 where the action lies on the critical path. */
  readonly on_critical: Uint8Array;
  /** Places of micro-batch m: `of_microbatch[microbatch_offsets[m] .. microbatch_offsets[m + 1]]`. */
  readonly of_microbatch: Int32Array;
  readonly microbatch_offsets: Int32Array;
  readonly transfers: TransferColumns;
  readonly memory: readonly RankMemory[];
}

export function columnsOf(view: StepView): StepColumns {
  const { actions } = view;
  const kind = Uint8Array.from(actions.kind);
  const microbatch = Int32Array.from(actions.microbatch);
  const start_ns = Float64Array.from(actions.start_ns);
  const end_ns = Float64Array.from(actions.end_ns);
  const on_critical = new Uint8Array(kind.length);
  for (const place of view.critical) on_critical[place] = 1;
  const num_microbatches = microbatch.reduce((most, each) => Math.max(most, each + 1), 0);
  const grouped = groupBy(microbatch, num_microbatches);
  return {
    num_ranks: view.num_ranks,
    num_microbatches,
    kinds: view.kinds,
    makespan_ns: view.makespan_ns,
    after_ns: view.after_ns,
    bubble_fraction: view.bubble_fraction,
    busy_ns: view.busy_ns,
    bubble_ns: view.bubble_ns,
    memory_limit_bytes: view.memory_limit_bytes,
    offsets: Int32Array.from(actions.offsets),
    kind,
    chunk: Int32Array.from(actions.chunk),
    microbatch,
    start_ns,
    end_ns,
    uses: Int32Array.from(actions.uses),
    held_by: Uint8Array.from(actions.held_by),
    holders: view.holders,
    before_ns: view.kinds.map((_, each) => timeBefore(each, kind, start_ns, end_ns)),
    critical: Int32Array.from(view.critical),
    on_critical,
    of_microbatch: grouped.places,
    microbatch_offsets: grouped.offsets,
    transfers: transferColumns(view),
    memory: view.memory.map(rankMemory),
  };
}

function timeBefore(
  wanted: number,
  kind: Uint8Array,
  start_ns: Float64Array,
  end_ns: Float64Array,
): Float64Array {
  const sums = new Float64Array(kind.length + 1);
  for (let place = 0; place < kind.length; place++) {
    const length = kind[place] === wanted ? at(end_ns, place) - at(start_ns, place) : 0;
    sums[place + 1] = at(sums, place) + length;
  }
  return sums;
}

/** Places by key, in order: a counting sort. */
function groupBy(keys: Int32Array, groups: number): { offsets: Int32Array; places: Int32Array } {
  const offsets = new Int32Array(groups + 1);
  for (const key of keys) offsets[key + 1] = at(offsets, key + 1) + 1;
  for (let group = 0; group < groups; group++)
    offsets[group + 1] = at(offsets, group + 1) + at(offsets, group);
  const next = offsets.slice();
  const places = new Int32Array(keys.length);
  keys.forEach((key, place) => {
    const to = at(next, key);
    places[to] = place;
    next[key] = to + 1;
  });
  return { offsets, places };
}

function transferColumns(view: StepView): TransferColumns {
  const raw = view.transfers;
  const start = raw.start_ns;
  const byTime = Int32Array.from(start.keys()).sort((a, b) => (start[a] ?? 0) - (start[b] ?? 0));
  const from = byTime.map((each) => raw.from_rank[each] ?? 0);
  const { offsets, places } = groupBy(from, view.num_ranks);
  const order = places.map((each) => at(byTime, each));
  const pick = (column: readonly number[]) => order.map((each) => column[each] ?? 0);
  const pickTime = (column: readonly number[]) => Float64Array.from(order, (each) => column[each] ?? 0);
  return {
    offsets,
    to_rank: pick(raw.to_rank),
    microbatch: pick(raw.microbatch),
    gradient: Uint8Array.from(order, (each) => (raw.gradient[each] ? 1 : 0)),
    start_ns: pickTime(raw.start_ns),
    end_ns: pickTime(raw.end_ns),
  };
}

function rankMemory(raw: StepView["memory"][number]): RankMemory {
  const bytes = Float64Array.from(raw.activation_bytes, (each) => each + raw.resident_bytes);
  return {
    resident_bytes: raw.resident_bytes,
    at_ns: Float64Array.from(raw.at_ns),
    chunks_held: Int32Array.from(raw.chunks_held),
    bytes,
    peak_bytes: bytes.reduce((most, each) => Math.max(most, each), raw.resident_bytes),
  };
}

/** The number at a place that exists. */
export function at(column: ArrayLike<number>, place: number): number {
  return column[place] as number;
}

/** The first place in [first, end) whose value is above `limit`; values do not fall. */
export function firstAbove(column: ArrayLike<number>, limit: number, first: number, end: number): number {
  let [low, high] = [first, end];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(column, middle) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function rankOf(step: StepColumns, place: number): number {
  return firstAbove(step.offsets, place, 1, step.num_ranks) - 1;
}
