"""How much memory does a stage need, and how many layers must be relieved to fit?

For a device that holds ``n`` layers of one kind, with ``f`` micro-batches in flight and ``k`` relieved layers::

    peak = fixed + n S + f ( n A - k (A - a) ) + (k > 0) w

``S`` state bytes of a layer, ``A`` / ``a`` bytes that it keeps without / with relief, ``w`` what one replayed layer
needs while it is replayed, ``fixed`` all that does not depend on the layers: framework, communicators, buffers,
gathered units, the model's ends.  ``f`` counts chunks in flight over chunks on the device, so that it also holds for
several chunks.  The head's stage frees the logits before the first layer is replayed, so that there ``w`` counts only
beyond them.  Shape letters: R rows, P stages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.cost.row_cost import RowCost
from planner.memory.activations import Relief
from planner.schedule.closed_form import in_flight_chunks
from planner.strategy_rows import SCHEDULES, StrategyRows, distinct_rows, v_placed, waiting_head

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Memory terms of rows that share one number of stages: [R, P], layer columns [R, N]."""

    fixed_bytes: Array
    in_flight: Array
    layer_state_bytes: Array
    replay_bytes: Array


def in_flight(rows: StrategyRows, num_stages: int) -> Array:
    """Micro-batches in flight on each stage, in units of a device's whole share of the layers: [R, P]."""
    distinct, index = distinct_rows([rows.schedule, rows.vpp, rows.num_microbatches, rows.group])
    stages = np.arange(num_stages)
    table = np.empty((len(distinct), num_stages))
    for position, (schedule, vpp, microbatches, group) in enumerate(distinct.tolist()):
        chunks = in_flight_chunks(SCHEDULES[schedule], num_stages, vpp, microbatches, group, stages)
        table[position] = np.asarray(chunks, dtype=np.float64) / vpp
    return table[index]


def head_stage(rows: StrategyRows, num_stages: int) -> Ints:
    """Stage that holds the head: the last one, or the first in a V placement: [R]."""
    return np.where(v_placed(rows), 0, num_stages - 1).astype(np.int64)


def end_seconds(rows: StrategyRows, cost: RowCost, num_stages: int) -> Array:
    """Time of the model's ends on the stages that hold them, and the host overhead of every stage: [R, P]."""
    seconds = np.repeat(cost.stage_host_s[:, None], num_stages, axis=1)
    seconds[:, 0] += cost.embedding_s
    seconds[np.arange(len(rows)), head_stage(rows, num_stages)] += cost.head_s
    return seconds


def stage_memory(rows: StrategyRows, cost: RowCost, reliefs: tuple[Relief, ...], num_stages: int) -> StageMemory:
    """Memory terms of rows whose ``pp`` is ``num_stages``."""
    flight = in_flight(rows, num_stages)
    fixed = np.repeat(cost.fixed_bytes[:, None], num_stages, axis=1)
    dense, expert = cost.dense_state.total, cost.expert_state.total
    fixed[:, 0] += cost.embedding_dense * dense + cost.embedding_saved * flight[:, 0]
    every, last = np.arange(len(rows)), head_stage(rows, num_stages)
    # The head's backward follows its forward at once, except breadth first, where all micro-batches wait.
    waiting = np.where(waiting_head(rows), rows.num_microbatches, 1)
    fixed[every, last] += (
        cost.head_dense * dense + cost.head_expert * expert + cost.head_saved * waiting + cost.head_transient
    )
    offload = np.array([2.0 if relief.offload else 1.0 for relief in reliefs])[rows.relief]
    replay = np.repeat((cost.saved_bytes - cost.relieved_bytes).max(axis=1)[:, None], num_stages, axis=1)
    replay *= offload[:, None]
    replay[every, last] = np.maximum(replay[every, last] - cost.head_saved - cost.head_transient, 0.0)
    return StageMemory(
        fixed_bytes=fixed,
        in_flight=flight,
        layer_state_bytes=cost.layer_dense * dense[:, None] + cost.layer_expert * expert[:, None],
        replay_bytes=replay,
    )
