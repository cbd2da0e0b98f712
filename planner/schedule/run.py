"""How long does a step of a pipeline take, and which of its actions make it so long?  The simulator, compiled.

Start of an action = the later of the end of the one before it on its rank and the end of the action whose data it
needs, plus the hop where that lies on another rank; which one that is: ``planner.schedule.dependencies``.  Sends are
asynchronous and links free.  The arithmetic is that of ``planner.schedule.simulate``, number for number
(tests/property/test_pipeline_run.py); that one also blocks on sends and draws, this one is what a search can afford:
O(actions), a 32-stage step of 512 micro-batches in interleaved order takes about a millisecond (benchmarks).

Every run names its **longest path**: how often each chunk's forward, backward and weight gradient stand on it, and how
many hops.  A path of an order is a path whatever the durations, so ::

    makespan(d) >= counts . d        for all durations d, with equality for those that the path was found with

which makes every run a linear lower bound of all others of the same order (``PathCounts``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from planner.errors import DocumentInvalid
from planner.schedule.orders.build import KEPT, OrderArrays, order_arrays
from planner.schedule.placement import chunk_ranks
from planner.strategy import ScheduleName
from solver.selection.kernel import INT, INTS, NOTHING, REAL, REALS, kernel

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT = 0, 2, 3
"""Kind codes (``orders.build.KINDS``)."""


@dataclass(frozen=True, slots=True)
class ChunkTimes:
    """Seconds of one micro-batch on each model chunk: float64[C] each; ``weight_gradient_s`` is part of backward."""

    forward_s: Array
    backward_s: Array
    weight_gradient_s: Array

    def of(self, dealing: int) -> ChunkTimes:
        """Times of one of several dealings."""
        return ChunkTimes(self.forward_s[dealing], self.backward_s[dealing], self.weight_gradient_s[dealing])


@dataclass(frozen=True, slots=True, eq=False)
class PathCounts:
    """How often each chunk's times stand on a path, and how many hops: a lower bound of every run of the order."""

    forwards: Array
    backwards: Array
    weight_gradients: Array
    """Less where the path leaves a chunk after its input gradient: may be negative."""
    hops: float

    def length_s(self, times: ChunkTimes, hop_s: float) -> float:
        """The path's length under some durations; no step is shorter."""
        return float(
            self.forwards @ times.forward_s
            + self.backwards @ times.backward_s
            + self.weight_gradients @ times.weight_gradient_s
            + self.hops * hop_s
        )


@dataclass(frozen=True, slots=True, eq=False)
class PipelineRun:
    """What came of a run: the step's length, and when each action of ``order`` started and ended."""

    order: OrderArrays
    ranks: IntArray
    times: ChunkTimes
    hop_s: float
    makespan_s: float
    start_s: Array
    end_s: Array

    def longest_path(self) -> PathCounts:
        """The chain of actions that makes the step as long as it is."""
        counts = np.zeros((4, self.order.num_chunks), np.int64)
        order = self.order
        places = np.zeros((2, order.num_chunks * order.num_microbatches), np.int64)
        columns = order.kind, order.chunk, order.microbatch, order.offsets
        hops = _count_path(*columns, self.ranks, self.start_s, self.end_s, self.hop_s, places, counts)
        forward, backward, gradient, weight = counts.astype(np.float64)
        return PathCounts(forward, backward + gradient, weight - gradient, float(hops))


def run_pipeline(
    schedule: ScheduleName, sizes: tuple[int, int, int, int], times: ChunkTimes, hop_s: float
) -> PipelineRun:
    """Run a schedule of ``sizes`` (stages, chunks a device, micro-batches, micro-batch group; 0 = stages).

    Raises ``DocumentInvalid`` for illegal sizes, and for times that are negative, not finite or miscounted.
    """
    order = order_arrays(schedule, *sizes)
    columns = times.forward_s, times.backward_s, times.backward_s - times.weight_gradient_s, times.weight_gradient_s
    durations = np.ascontiguousarray(np.stack(columns), dtype=np.float64)
    if durations.shape != (4, order.num_chunks):
        raise DocumentInvalid(
            f"times of {durations.shape[1]} chunks were given, the order has {order.num_chunks}", where="schedule#/times"
        )
    if not (bool(np.isfinite(durations).all()) and bool((durations >= 0).all()) and 0 <= hop_s < np.inf):
        raise DocumentInvalid("a duration is negative or not finite", where="schedule#/times")
    ranks = np.array(chunk_ranks(schedule, sizes[0], sizes[1]), np.int64)
    start_s, end_s = np.zeros(len(order.kind)), np.zeros(len(order.kind))
    places = np.full((2, order.num_chunks * order.num_microbatches), -1, np.int64)
    columns_of = order.kind, order.chunk, order.microbatch, order.offsets
    makespan_s = _run(*columns_of, ranks, durations, hop_s, places, start_s, end_s)
    if makespan_s < 0:
        raise AssertionError(f"the order of {schedule} with {sizes} cannot run to its end")
    return PipelineRun(order, ranks, times, hop_s, makespan_s, start_s, end_s)


_TABLE = types.float64[:, ::1]
_PLACES = types.int64[:, ::1]


@kernel(REAL(INTS, INTS, INTS, INTS, INTS, _TABLE, REAL, _PLACES, REALS, REALS))
def _run(  # noqa: PLR0917  (an order, its durations, and where the answer goes)
    kind: Any,
    chunk: Any,
    microbatch: Any,
    offsets: Any,
    ranks: Any,
    durations: Any,
    hop_s: float,
    places: Any,
    start_s: Any,
    end_s: Any,
) -> float:
    """Fill starts and ends; the makespan, or -1 where the order stops before its end.

    ``places`` [2, C m]: where the forward and the input gradient of each chunk and micro-batch stand, once they ran.
    The ranks are visited there and back, each running as far as it can: forwards go up, gradients come down.
    """
    num_ranks, chunks = len(offsets) - 1, len(ranks)
    microbatches = places.shape[1] // chunks
    position = offsets[:-1].copy()
    left, turn = len(kind), 0
    while left > 0:
        moved = False
        for step in range(num_ranks):
            rank = step if turn % 2 == 0 else num_ranks - 1 - step
            index, stop = position[rank], offsets[rank + 1]
            now = end_s[index - 1] if index > offsets[rank] else 0.0
            while index < stop:
                what, here, number = kind[index], chunk[index], microbatch[index]
                if what != WEIGHT_GRADIENT:
                    # The chunk whose result is needed; a forward of the first and a gradient of the last need none.
                    there = here - 1 if what == FORWARD else here + 1
                    row = 0 if what == FORWARD else 1
                    if 0 <= there < chunks:
                        cause = places[row, there * microbatches + number]
                        if cause < 0:
                            break
                        arrival = end_s[cause] + (hop_s if ranks[there] != rank else 0.0)
                        if arrival > now:
                            now = arrival
                    places[row, here * microbatches + number] = index
                start_s[index] = now
                now += durations[what, here]
                end_s[index] = now
                index += 1
            if index > position[rank]:
                moved = True
                left -= index - position[rank]
                position[rank] = index
        turn += 1
        if not moved:
            return -1.0
    longest = 0.0
    for rank in range(num_ranks):
        if offsets[rank + 1] > offsets[rank]:
            longest = max(longest, end_s[offsets[rank + 1] - 1])
    return longest


@kernel(INT(INTS, INTS, INTS, INTS, INTS, REALS, REALS, REAL, _PLACES, _PLACES))
def _count_path(  # noqa: PLR0917  (an order, when it ran, and where the answer goes)
    kind: Any,
    chunk: Any,
    microbatch: Any,
    offsets: Any,
    ranks: Any,
    start_s: Any,
    end_s: Any,
    hop_s: float,
    places: Any,
    counts: Any,
) -> int:
    """Count the actions of the longest path by kind and chunk; the number of its hops."""
    num_ranks, chunks = len(offsets) - 1, len(ranks)
    microbatches = places.shape[1] // chunks
    for index in range(len(kind)):
        if kind[index] != WEIGHT_GRADIENT:
            row = 0 if kind[index] == FORWARD else 1
            places[row, chunk[index] * microbatches + microbatch[index]] = index
    last, longest = 0, -1.0
    for rank in range(num_ranks):
        index = offsets[rank + 1] - 1
        if offsets[rank + 1] > offsets[rank] and end_s[index] > longest:
            last, longest = index, end_s[index]
    hops, index = 0, last
    while True:
        what, here, number = kind[index], chunk[index], microbatch[index]
        counts[what, here] += 1
        rank, cause = ranks[here], -1
        there = here - 1 if what == FORWARD else here + 1
        if what != WEIGHT_GRADIENT and 0 <= there < chunks:
            row = 0 if what == FORWARD else 1
            cause = places[row, there * microbatches + number]
            crosses = ranks[there] != rank
            if start_s[index] == end_s[cause] + (hop_s if crosses else 0.0):
                hops += 1 if crosses else 0
                index = cause
                continue
        if index == offsets[rank]:
            return hops
        index -= 1


PATHS_A_RANK = 3


@lru_cache(maxsize=KEPT)
def paths_of_ranks(schedule: ScheduleName, sizes: tuple[int, int, int, int]) -> tuple[PathCounts, ...]:
    """Three paths a rank that an order surely has, without running it.

    Each goes down to the rank and comes back from it to the first one.  On the first path the rank does all its work.
    On the second it begins with the first micro-batch that comes back from the last chunk; where stages are alike, that
    of the last rank is the longest path of most schedules.  On the third it works up to its last forward, follows that
    one down and the next gradient back up, and does the rest.
    """
    order = order_arrays(schedule, *sizes)
    chunks, number = order.num_chunks, PATHS_A_RANK * sizes[0]
    ranks = np.array(chunk_ranks(schedule, sizes[0], sizes[1]), np.int64)
    counts, hops = np.zeros((4 * number, chunks), np.int64), np.zeros(number, np.int64)
    places = np.full((2, chunks * order.num_microbatches), -1, np.int64)
    _count_rank_paths(order.kind, order.chunk, order.microbatch, order.offsets, ranks, places, counts, hops)
    table = counts.reshape(number, 4, chunks).astype(np.float64)
    return tuple(
        PathCounts(each[0], each[1] + each[2], each[3] - each[2], float(count))
        for each, count in zip(table, hops.tolist(), strict=True)
    )


@njit
def _along(kind: Any, chunk: Any, first: int, end: int, counts: Any, base: int) -> None:
    """Count the actions ``first`` to ``end`` of one rank, the last one left out."""
    for index in range(first, end):
        counts[base + kind[index], chunk[index]] += 1


@njit
def _across(  # noqa: PLR0917
    row: int, number: int, first: int, last: int, kind: Any, ranks: Any, places: Any, counts: Any, base: int
) -> int:
    """Count one micro-batch's actions of chunk after chunk, ``first`` to ``last``; the hops between them."""
    microbatches, hops = places.shape[1] // len(ranks), 0
    step = 1 if last >= first else -1
    for each in range(first, last + step, step):
        counts[base + kind[places[row, each * microbatches + number]], each] += 1
        if each != last and ranks[each + step] != ranks[each]:
            hops += 1
    return hops


@kernel(NOTHING(INTS, INTS, INTS, INTS, INTS, _PLACES, _PLACES, INTS))
def _count_rank_paths(  # noqa: PLR0917  (an order, and where the answer goes)
    kind: Any, chunk: Any, microbatch: Any, offsets: Any, ranks: Any, places: Any, counts: Any, hops: Any
) -> None:
    """Count the actions of ``paths_of_ranks``: path k in rows 4k .. 4k+3 of ``counts``."""
    num_ranks, chunks = len(offsets) - 1, len(ranks)
    microbatches = places.shape[1] // chunks
    top = chunks - 1
    back = -1  # the micro-batch whose gradient the last chunk runs first
    for index in range(len(kind)):
        if kind[index] != WEIGHT_GRADIENT:
            row = 0 if kind[index] == FORWARD else 1
            places[row, chunk[index] * microbatches + microbatch[index]] = index
            if row == 1 and chunk[index] == top and back < 0:
                back = microbatch[index]
    for path in range(PATHS_A_RANK * num_ranks):
        rank, way, base = path // PATHS_A_RANK, path % PATHS_A_RANK, 4 * path
        begin, end = offsets[rank], offsets[rank + 1]
        highest, last_forward, last = 0, begin, begin
        for each in range(chunks):
            if ranks[each] == rank:
                highest = each
        for index in range(begin, end):
            if kind[index] == FORWARD and chunk[index] == highest:
                last_forward = index
            if kind[index] in (1, INPUT_GRADIENT) and chunk[index] == rank:
                last = index
        if way == 1:
            _along(kind, chunk, offsets[0], places[0, back], counts, base)
            hops[path] += _across(0, back, 0, top, kind, ranks, places, counts, base)
            if top > highest:
                hops[path] += _across(1, back, top, highest + 1, kind, ranks, places, counts, base)
                hops[path] += 1 if ranks[highest] != ranks[highest + 1] else 0
            begin = places[1, highest * microbatches + back]
        elif rank > 0:
            number = microbatch[begin]
            _along(kind, chunk, offsets[0], places[0, number], counts, base)
            hops[path] += _across(0, number, 0, rank - 1, kind, ranks, places, counts, base) + 1
        if way == 2:
            number = microbatch[last_forward]
            _along(kind, chunk, begin, last_forward, counts, base)
            hops[path] += _across(0, number, highest, top, kind, ranks, places, counts, base)
            # What the last chunk's rank does until its next gradient of that chunk.
            index = places[0, top * microbatches + number] + 1
            while not (kind[index] in (1, INPUT_GRADIENT) and chunk[index] == top):
                _along(kind, chunk, index, index + 1, counts, base)
                index += 1
            if top > highest:
                hops[path] += _across(1, microbatch[index], top, highest + 1, kind, ranks, places, counts, base)
                hops[path] += 1 if ranks[highest] != ranks[highest + 1] else 0
            begin = places[1, highest * microbatches + microbatch[index]]
        _along(kind, chunk, begin, last + 1, counts, base)
        if rank > 0:
            hops[path] += 1 + _across(1, microbatch[last], rank - 1, 0, kind, ranks, places, counts, base)
            last = places[1, microbatch[last]]
        _along(kind, chunk, last + 1, offsets[1] if rank > 0 else end, counts, base)
