"""The compiled simulator: the time of a pipeline step, and the actions that make it so long.

Start of an action = the later of the end of the one before it on its rank and the end of the action whose data it
needs, plus the hop where that lies on another rank; which one that is: ``planner.predict.schedule.dependencies``.
Sends are asynchronous and links free.  The arithmetic is that of ``planner.predict.schedule.simulate``, number for
number (tests/property/test_pipeline_run.py); that one also blocks on sends and draws, this one is what a search can
afford: O(actions), a 32-stage step of 512 micro-batches in interleaved order takes about a millisecond (benchmarks).

Every run names its longest path, which bounds all other runs of the order (``planner.predict.schedule.paths``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from planner.errors import DocumentInvalid
from planner.predict.schedule.action import FORWARD, WEIGHT_GRADIENT
from planner.predict.schedule.orders.build import KEPT, OrderArrays, order_arrays
from planner.predict.schedule.paths import ChunkTimes, PathCounts, longest_path, paths_of_ranks
from planner.strategy.schedules import V_SCHEDULES, ScheduleName, chunk_stages
from solver.arrays import Array, Ints
from solver.selection.kernel import INT_ROWS, INTS, REAL, REAL_ROWS, REALS, kernel

ALIKE_HOPS = (0.01, 0.05, 0.2)
"""Hops of the runs that show what paths equal chunks have, over what a chunk takes."""


@dataclass(frozen=True, slots=True, eq=False)
class PipelineRun:
    """What came of a run: the step's length, and when each action of ``order`` started and ended."""

    order: OrderArrays
    ranks: Ints
    times: ChunkTimes
    hop_s: Array
    makespan_s: float
    start_s: Array
    end_s: Array

    def longest_path(self) -> PathCounts:
        """The chain of actions that makes the step as long as it is."""
        return longest_path(self.order, self.ranks, (self.start_s, self.end_s, self.hop_s))


def run_pipeline(
    schedule: ScheduleName, sizes: tuple[int, int, int, int], times: ChunkTimes, hop_s: ArrayLike
) -> PipelineRun:
    """Run a schedule of ``sizes`` (stages, chunks a device, micro-batches, micro-batch group; 0 = stages).

    ``hop_s``: one value, or one for each hop c -> c+1; it counts where the two chunks lie on different ranks.

    Raises ``DocumentInvalid`` for illegal sizes, and for times that are negative, not finite or miscounted.
    """
    order = order_arrays(schedule, *sizes)
    columns = times.forward_s, times.backward_s, times.backward_s - times.weight_gradient_s, times.weight_gradient_s
    durations = np.ascontiguousarray(np.stack(columns), dtype=np.float64)
    if durations.shape != (4, order.num_chunks):
        raise DocumentInvalid(
            f"times of {durations.shape[1]} chunks were given, the order has {order.num_chunks}",
            where="schedule#/times",
        )
    hops_s = np.broadcast_to(np.asarray(hop_s, np.float64), (order.num_chunks - 1,)).copy()
    given = np.concatenate([durations.ravel(), hops_s])
    if not bool((np.isfinite(given) & (given >= 0)).all()):
        raise DocumentInvalid("a duration is negative or not finite", where="schedule#/times")
    ranks = np.array(chunk_stages(sizes[0], sizes[1], v_placed=schedule in V_SCHEDULES), np.int64)
    start_s, end_s = np.zeros(len(order.kind)), np.zeros(len(order.kind))
    places = np.full((2, order.num_chunks * order.num_microbatches), -1, np.int64)
    columns_of = order.kind, order.chunk, order.microbatch, order.offsets
    makespan_s = _run(*columns_of, ranks, durations, hops_s, places, start_s, end_s)
    if makespan_s < 0:
        raise AssertionError(f"the order of {schedule} with {sizes} cannot run to its end")
    return PipelineRun(order, ranks, times, hops_s, makespan_s, start_s, end_s)


@lru_cache(maxsize=KEPT)
def known_paths(schedule: ScheduleName, sizes: tuple[int, int, int, int]) -> tuple[PathCounts, ...]:
    """``paths_of_ranks``, and the longest paths of runs with equal chunks and some hops (``ALIKE_HOPS``)."""
    ones = np.ones(order_arrays(schedule, *sizes).num_chunks)
    alike = ChunkTimes(ones, 2.0 * ones, ones)
    runs = [run_pipeline(schedule, sizes, alike, 3.0 * hop).longest_path() for hop in ALIKE_HOPS]
    return (*paths_of_ranks(schedule, sizes), *runs)


@kernel(REAL(INTS, INTS, INTS, INTS, INTS, REAL_ROWS, REALS, INT_ROWS, REALS, REALS))
def _run(  # noqa: PLR0917  (an order, its durations, and where the answer goes)
    kind: Any,
    chunk: Any,
    microbatch: Any,
    offsets: Any,
    ranks: Any,
    durations: Any,
    hop_s: Any,
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
                        arrival = end_s[cause] + (hop_s[min(here, there)] if ranks[there] != rank else 0.0)
                        now = max(now, arrival)
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
