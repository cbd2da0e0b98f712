"""The actions of every rank of a pipeline, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import get_args

import numpy as np

from planner.predict.schedule.action import KINDS, Action, Order
from planner.predict.schedule.orders.kernels import Script, write_order
from planner.predict.schedule.orders.legality import check_order_inputs
from planner.strategy.schedules import ScheduleName
from solver.arrays import Ints

CODES: dict[str, int] = {name: code for code, name in enumerate(get_args(ScheduleName))}
KEPT = 64
"""Orders remembered: a search looks at many durations of few of them."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderArrays:
    """An order as arrays; action ``a`` of rank r has index ``offsets[r] <= a < offsets[r+1]``; kinds: ``KINDS``."""

    offsets: Ints
    kind: Ints
    chunk: Ints
    microbatch: Ints
    num_chunks: int
    num_microbatches: int


@lru_cache(maxsize=KEPT)
def order_arrays(
    schedule: ScheduleName, num_stages: int, vpp: int, num_microbatches: int, microbatch_group_size: int = 0
) -> OrderArrays:
    """The order of a schedule; it depends on sizes alone.  Arguments and errors as those of ``build_order``."""
    check_order_inputs(schedule, num_stages, vpp, num_microbatches, microbatch_group_size)
    chunks = num_stages * vpp
    # ZB-V is written for at least 2p - 1 micro-batches; what is queued of the others needs its place too.
    written = max(num_microbatches, 2 * num_stages) * vpp
    places = 3 * num_microbatches * chunks
    kind, chunk, microbatch, offsets = (np.zeros(size, np.int64) for size in (places, places, places, num_stages + 1))
    script = Script(
        kind,
        chunk,
        microbatch,
        np.array([0, 0, 0, num_microbatches]),
        np.zeros((written, 2), np.int64),
        np.zeros((2, chunks), np.int64),
    )
    write_order(
        script,
        offsets,
        CODES[schedule],
        num_stages,
        vpp,
        num_microbatches,
        microbatch_group_size or num_stages,
    )
    count = int(offsets[-1])
    arrays = kind[:count].copy(), chunk[:count].copy(), microbatch[:count].copy()
    return OrderArrays(offsets, *arrays, chunks, num_microbatches)


def build_order(
    schedule: ScheduleName, num_stages: int, vpp: int, num_microbatches: int, microbatch_group_size: int = 0
) -> Order:
    """One tuple of actions a rank.

    ``microbatch_group_size`` is for ``GROUPED_SCHEDULES`` alone; 0 means ``num_stages``.  Raises ``DocumentInvalid``
    with all findings when the sizes are not legal (``legality.order_findings``).
    """
    made = order_arrays(schedule, num_stages, vpp, num_microbatches, microbatch_group_size)
    columns = made.kind.tolist(), made.chunk.tolist(), made.microbatch.tolist()
    flat = [Action(KINDS[kind], chunk, microbatch) for kind, chunk, microbatch in zip(*columns, strict=True)]
    edges = made.offsets.tolist()
    return tuple(tuple(flat[first:end]) for first, end in pairwise(edges))
