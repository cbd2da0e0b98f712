"""The cost of gathering again: torch's pipelines keep only a few chunks of a rank gathered.

The runtime looks for the next ``a`` = 3 different chunks of a rank, gathers those that are not there and drops all
others (torch 2.13.0, distributed/pipelining/schedules.py:1285-1364, max_active_stages).  With ``v`` > 3 chunks,
interleaved schedules in ``r = m / g`` rounds of ``g`` micro-batches gather ``2 r (v - 3) + 7`` chunks a step where each
once would do, breadth-first ones ``2 v - 3`` (counted on torch's code: tests/oracle/test_regathers_against_torch.py).

A round alternates forward passes of one chunk with backward passes of another and gathers two chunks.  On the last
rank, which waits most, one of them has the round to hide under, the other one forward and one backward pass of a chunk;
on the first rank each has about half of the round.  With ``W`` seconds to gather a stage's parameters once and ``C``
seconds of its compute a micro-batch, half of the gathers are exposed by ``max(0, W - C) / v``, which is a
micro-batch's ::

    (v - 3) / (g v) max(0, W - C)

Breadth-first schedules run all micro-batches of a chunk before the next one: nothing is exposed.  Memory counts all
chunks as gathered, which is more than there is.  Shape letter: R rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.predict.cost.data_parallel import gathered_once_s
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.step_payload import DataParallelism
from planner.strategy.rows import StrategyRows, scheduled_as
from solver.arrays import Array

ACTIVE_CHUNKS = 3


def gathers_a_step(rows: StrategyRows) -> Array:
    """How often a step gathers each chunk of the rank that gathers most, on average: [R]."""
    chunks = rows.vpp.astype(np.float64)
    rounds = rows.num_microbatches / np.where(rows.group > 0, rows.group, rows.pp)
    interleaved = 2.0 * rounds * (chunks - ACTIVE_CHUNKS) + 7.0
    looped = 2.0 * chunks - ACTIVE_CHUNKS
    of_schedule = np.where(scheduled_as(rows, ("looped_bfs",)), looped, interleaved)
    chunked = scheduled_as(rows, ("interleaved", "interleaved_zb", "looped_bfs"))
    return np.where(chunked & (rows.pp > 1) & (chunks > ACTIVE_CHUNKS), of_schedule / chunks, 1.0)


def uncovered_s(hardware: Hardware, held: Sequence[tuple[Array, DataParallelism]], compute_s: Array) -> Array:
    """``max(0, W - C)`` of the mean stage with the parameters ``held``; 0 where no chunks are dropped: [R]."""
    once_s = np.zeros(len(compute_s))
    if not hardware.physics.drops_chunks:
        return once_s
    for parameters, parallel in held:
        once_s = once_s + gathered_once_s(parameters, parallel, hardware)
    return np.maximum(once_s - compute_s, 0.0)


def exposed_a_microbatch_s(rows: StrategyRows, uncovered_s: Array) -> Array:
    """Seconds that every stage waits for chunks on each micro-batch; ``uncovered_s``: ``max(0, W - C)``: [R]."""
    if not np.any(uncovered_s):
        return np.zeros(len(rows))
    beyond: Array = np.maximum(rows.vpp - ACTIVE_CHUNKS, 0.0)
    group = np.where(rows.group > 0, rows.group, rows.pp)
    exposed: Array = beyond / (group * rows.vpp) * uncovered_s
    return np.where((rows.pp > 1) & scheduled_as(rows, ("interleaved", "interleaved_zb")), exposed, 0.0)
