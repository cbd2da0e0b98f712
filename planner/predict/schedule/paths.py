"""The chains of actions of an order that bound every step from below.

Every action waits for the one before it on its rank and for the one whose data it needs.  A chain of such waits is a
path whatever the durations are, so with how often each chunk's forward, backward and weight gradient stand on it, and
how many hops ::

    makespan(d) >= counts . d        for all durations d

Some paths are known from the order alone (``paths_of_ranks``); every run has one that it is exactly as long as
(``longest_path``), which bounds all other runs of the order.  How tight both are: benchmarks/path_bounds.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from planner.predict.schedule.action import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from planner.predict.schedule.orders.build import KEPT, OrderArrays, order_arrays
from planner.strategy.schedules import V_SCHEDULES, ScheduleName, chunk_stages
from solver.arrays import Array, Ints
from solver.selection.kernel import INT, INT_ROWS, INTS, NOTHING, REALS, inner, kernel

PATHS_A_RANK = 3


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


def longest_path(order: OrderArrays, ranks: Ints, ran: tuple[Array, Array, Array]) -> PathCounts:
    """The chain of actions that made a run as long as it was; ``ran``: starts, ends and the hops."""
    counts = np.zeros((4, order.num_chunks), np.int64)
    places = np.zeros((2, order.num_chunks * order.num_microbatches), np.int64)
    hops = _count_path(order.kind, order.chunk, order.microbatch, order.offsets, ranks, *ran, places, counts)
    forward, backward, gradient, weight = counts.astype(np.float64)
    return PathCounts(forward, backward + gradient, weight - gradient, float(hops))


@kernel(INT(INTS, INTS, INTS, INTS, INTS, REALS, REALS, REALS, INT_ROWS, INT_ROWS))
def _count_path(  # noqa: PLR0917  (an order, when it ran, and where the answer goes)
    kind: Any,
    chunk: Any,
    microbatch: Any,
    offsets: Any,
    ranks: Any,
    start_s: Any,
    end_s: Any,
    hop_s: Any,
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
            if start_s[index] == end_s[cause] + (hop_s[min(here, there)] if crosses else 0.0):
                hops += 1 if crosses else 0
                index = cause
                continue
        if index == offsets[rank]:
            return hops
        index -= 1


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
    ranks = np.array(chunk_stages(sizes[0], sizes[1], v_placed=schedule in V_SCHEDULES), np.int64)
    counts, hops = np.zeros((4 * number, chunks), np.int64), np.zeros(number, np.int64)
    places = np.full((2, chunks * order.num_microbatches), -1, np.int64)
    _count_rank_paths(order.kind, order.chunk, order.microbatch, order.offsets, ranks, places, counts, hops)
    table = counts.reshape(number, 4, chunks).astype(np.float64)
    return tuple(
        PathCounts(each[0], each[1] + each[2], each[3] - each[2], float(count))
        for each, count in zip(table, hops.tolist(), strict=True)
    )


@inner
def _along(kind: Any, chunk: Any, first: int, end: int, counts: Any, base: int) -> None:
    """Count the actions ``first`` to ``end`` of one rank, the last one left out."""
    for index in range(first, end):
        counts[base + kind[index], chunk[index]] += 1


@inner
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


@inner
def _back_to(  # noqa: PLR0917
    chunk: int, number: int, kind: Any, ranks: Any, places: Any, counts: Any, base: int
) -> int:
    """Count one micro-batch's gradients from the last chunk down to the one after ``chunk``; the hops up to it."""
    top = len(ranks) - 1
    if top == chunk:
        return 0
    hops = _across(1, number, top, chunk + 1, kind, ranks, places, counts, base)
    return hops + (1 if ranks[chunk] != ranks[chunk + 1] else 0)


@inner
def _last(kind: Any, chunk: Any, begin: int, end: int, wanted: int, forward: bool) -> int:
    """Where the last forward, or input gradient, of a chunk stands."""
    last = begin
    for index in range(begin, end):
        is_forward, is_weight = kind[index] == FORWARD, kind[index] == WEIGHT_GRADIENT
        if chunk[index] == wanted and not is_weight and is_forward == forward:
            last = index
    return last


@kernel(NOTHING(INTS, INTS, INTS, INTS, INTS, INT_ROWS, INT_ROWS, INTS))
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
        highest = chunks - 1
        while ranks[highest] != rank:
            highest -= 1
        last_forward = _last(kind, chunk, begin, end, highest, True)
        last = _last(kind, chunk, begin, end, rank, False)
        if way == 1:
            _along(kind, chunk, offsets[0], places[0, back], counts, base)
            hops[path] += _across(0, back, 0, top, kind, ranks, places, counts, base)
            hops[path] += _back_to(highest, back, kind, ranks, places, counts, base)
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
            while not (kind[index] in (BACKWARD, INPUT_GRADIENT) and chunk[index] == top):
                _along(kind, chunk, index, index + 1, counts, base)
                index += 1
            hops[path] += _back_to(highest, microbatch[index], kind, ranks, places, counts, base)
            begin = places[1, highest * microbatches + microbatch[index]]
        _along(kind, chunk, begin, last + 1, counts, base)
        if rank > 0:
            hops[path] += 1 + _across(1, microbatch[last], rank - 1, 0, kind, ranks, places, counts, base)
            last = places[1, microbatch[last]]
        _along(kind, chunk, last + 1, offsets[1] if rank > 0 else end, counts, base)
