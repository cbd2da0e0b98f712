"""The memory that a stage needs, and how many layers must be relieved to fit.

For a device that holds ``n`` layers of one kind, with ``f`` micro-batches in flight and ``k`` relieved layers, the
largest over the moments of a step (``planner.predict.memory.moments``) of::

    held = fixed + n S + f ( n A - k (A - a) ) + (k > 0) w

``S`` state bytes of a layer, ``A`` / ``a`` bytes that it keeps without / with relief, ``w`` what one replayed layer
needs while it is replayed, ``fixed`` all that does not depend on the layers: back-end, communicators, buffers,
gathered units, the model's ends.  ``f`` counts chunks in flight over chunks on the device, so that it also holds for
several chunks.  The head's stage frees the logits before the first layer is replayed, so that there ``w`` counts only
beyond them.  Shape letters: R rows, P stages, N layer kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.predict.cost.row_cost import RowCost
from planner.predict.cost.short_axis import least_of_row, most_of_row, rows_at
from planner.predict.memory.moments import GRADIENT_BYTES, Moment, MomentTerms, Units, end_bytes, passes_bytes
from planner.predict.memory.states import StateBytes
from planner.predict.schedule.in_flight import in_flight_chunks
from planner.strategy.rows import StrategyRows, distinct_rows, scheduled_as, v_placed, waiting_head
from planner.strategy.schedules import SCHEDULE_NAMES
from planner.strategy.strategy import Relief
from solver.arrays import Array, Ints


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Moments of rows that share one number of stages; the first one holds every kept activation."""

    moments: tuple[Moment, ...]

    @property
    def passes(self) -> Moment:
        """The moment at which every kept activation is there."""
        return self.moments[0]


def in_flight(rows: StrategyRows, cost: RowCost, num_stages: int) -> Array:
    """Micro-batches in flight on each stage, in units of a device's whole share of the layers: [R, P].

    A back-end may keep more than its schedule asks for (``RowCost.bubbles_keep``, ``warmup_chunks``).
    """
    flight = _scheduled(rows, num_stages)
    if not (np.any(cost.bubbles_keep) or np.any(cost.warmup_chunks)):
        return flight
    looped = scheduled_as(rows, ("gpipe", "looped_bfs"))
    idle = np.where(looped, cost.bubbles_keep * (num_stages - 1.0) / rows.vpp, 0.0)
    more = np.where(scheduled_as(rows, ("interleaved",)), cost.warmup_chunks / rows.vpp, 0.0)
    return flight + idle[:, None] + np.minimum(more[:, None], rows.num_microbatches[:, None] - flight)


def _scheduled(rows: StrategyRows, num_stages: int) -> Array:
    """``in_flight`` of the schedules: [R, P]."""
    distinct, index = distinct_rows([rows.schedule, rows.vpp, rows.num_microbatches, rows.group])
    table = np.empty((len(distinct), num_stages))
    for position, (schedule, vpp, microbatches, group) in enumerate(distinct.tolist()):
        table[position] = _of_schedule(schedule, vpp, microbatches, group, num_stages)
    return rows_at(table, index)


@lru_cache(maxsize=16_384)
def _of_schedule(schedule: int, vpp: int, num_microbatches: int, group: int, num_stages: int) -> tuple[float, ...]:
    """One row of ``in_flight``: a search asks for the same few thousand again and again."""
    stages = np.arange(num_stages)
    chunks = in_flight_chunks(SCHEDULE_NAMES[schedule], num_stages, vpp, num_microbatches, group, stages)
    return tuple((np.broadcast_to(chunks, num_stages) / vpp).tolist())


def head_stage(rows: StrategyRows, num_stages: int) -> Ints:
    """Stage that holds the head: the last one, or the first in a V placement: [R]."""
    return np.where(v_placed(rows), 0, num_stages - 1).astype(np.int64)


def end_seconds(rows: StrategyRows, cost: RowCost, num_stages: int) -> Array:
    """Time of the model's ends on the stages that hold them, and what every stage loses on a micro-batch: [R, P]."""
    seconds = np.repeat((cost.stage_host_s + cost.regather_s)[:, None], num_stages, axis=1)
    seconds[:, 0] += cost.embedding_s
    seconds[np.arange(len(rows)), head_stage(rows, num_stages)] += cost.head_s
    return seconds


def stage_memory(rows: StrategyRows, cost: RowCost, reliefs: tuple[Relief, ...], num_stages: int) -> StageMemory:
    """Moments of rows whose ``pp`` is ``num_stages``."""
    offload = np.array([2.0 if relief.offload else 1.0 for relief in reliefs])[rows.relief]
    replay = offload * most_of_row(cost.saved_bytes - cost.relieved_bytes)
    if cost.apart is None:
        return StageMemory((_summed(rows, cost, replay, num_stages),))
    return StageMemory(_apart(rows, cost, cost.apart, replay, num_stages))


def _waiting(rows: StrategyRows) -> Array:
    """Micro-batches at the head: its backward follows its forward at once, except breadth first, where all wait."""
    return np.where(waiting_head(rows), rows.num_microbatches, 1).astype(np.float64)


def passes_memory(
    rows: StrategyRows, cost: RowCost, reliefs: tuple[Relief, ...], num_stages: int
) -> tuple[Array, Array, Array]:
    """Of ``StageMemory.passes``: fixed bytes, micro-batches in flight (two [R, P]), state bytes of a layer [R, N]."""
    if cost.apart is None:
        return _passes_summed(rows, cost, num_stages)
    passes = stage_memory(rows, cost, reliefs, num_stages).passes
    return passes.fixed_bytes, passes.in_flight, passes.layer_state_bytes


def _passes_summed(rows: StrategyRows, cost: RowCost, num_stages: int) -> tuple[Array, Array, Array]:
    """``passes_memory`` where one moment stands for all."""
    flight, dense, expert = in_flight(rows, cost, num_stages), cost.dense_state.total, cost.expert_state.total
    fixed = np.repeat(cost.fixed_bytes[:, None], num_stages, axis=1)
    fixed[:, 0] += cost.embedding_dense * dense + cost.frozen.embedding + cost.embedding_saved * flight[:, 0]
    fixed[np.arange(len(rows)), head_stage(rows, num_stages)] += (
        cost.head_dense * dense + cost.head_expert * expert + cost.head_saved * _waiting(rows) + cost.head_transient
    )
    fixed[np.arange(len(rows)), head_stage(rows, num_stages)] += cost.frozen.head
    return fixed, flight, cost.layer_dense * dense[:, None] + cost.layer_expert * expert[:, None] + cost.frozen.layer


def _summed(rows: StrategyRows, cost: RowCost, replay: Array, num_stages: int) -> Moment:
    """One moment that stands for all."""
    fixed, flight, layer_states = _passes_summed(rows, cost, num_stages)
    every, last = np.arange(len(rows)), head_stage(rows, num_stages)
    again = np.repeat(replay[:, None], num_stages, axis=1)
    again[every, last] = np.maximum(again[every, last] - cost.head_saved - cost.head_transient, 0.0)
    buffers = np.repeat(cost.fixed_bytes[:, None], num_stages, axis=1)
    buffers[every, last] += cost.head_transient
    kept = np.zeros_like(fixed)
    kept[every, last] = cost.head_saved * _waiting(rows)
    kept[:, 0] += cost.embedding_saved * flight[:, 0]
    return Moment(
        name="passes",
        kept_bytes=kept,
        buffer_bytes=buffers,
        in_flight=flight,
        replay_bytes=again,
        layer_state_bytes=layer_states,
        dense_state=cost.dense_state,
        expert_state=cost.expert_state,
        fixed_bytes=fixed,
    )


def leanest_fixed_bytes(rows: StrategyRows, cost: RowCost, flight: Array, dense: Array, expert: Array) -> Array:
    """What the stages hold beside layers at least, with ``dense`` / ``expert`` bytes a parameter on the device: [R, P].

    ``flight``: micro-batches in flight.

    Where moments are billed apart, the ends keep their activations at different ones, so only states are counted.
    """
    num_stages = flight.shape[1]
    every, last = np.arange(len(rows)), head_stage(rows, num_stages)
    first_bytes = cost.embedding_dense * dense + cost.frozen.least_embedding
    last_bytes = cost.head_dense * dense + cost.head_expert * expert + cost.frozen.least_head
    if cost.apart is None:
        first_bytes = first_bytes + cost.embedding_saved * flight[:, 0]
        last_bytes = last_bytes + cost.head_saved * _waiting(rows) + cost.head_transient
    fixed = np.repeat(cost.fixed_bytes[:, None], num_stages, axis=1)
    fixed[:, 0] += first_bytes
    fixed[every, last] += last_bytes
    return fixed


def _apart(rows: StrategyRows, cost: RowCost, terms: MomentTerms, replay: Array, num_stages: int) -> tuple[Moment, ...]:
    """Moments of PyTorch FSDP2, each for itself."""
    first, last = np.zeros((2, len(rows), num_stages))
    first[:, 0] = 1.0
    last[np.arange(len(rows)), head_stage(rows, num_stages)] = 1.0
    units, flight = _units(rows, cost, terms, first, last), in_flight(rows, cost, num_stages)
    kept, passing, again = _first_backward(rows, cost, terms, units, replay)
    kept = kept + _kept_by_stage(rows, cost, terms, flight, first, last)
    held = cost.fixed_bytes[:, None] + _received_bytes(rows, terms, flight, first, last)
    none, less = np.zeros_like(flight), np.maximum(flight - 1.0, 0.0)
    during, after = (cost.dense_state, cost.expert_state), (terms.end_dense, terms.end_expert)
    tensors = {
        "passes": (during, (kept, held + passing, flight, again)),
        "second": (after, (kept, held + passing, less, again)),
        "end": (after, (none, held + end_bytes(terms, units, first, last), none, none)),
        "step": ((terms.step_dense, terms.step_expert), (none, held, none, none)),
    }
    if not np.any(waiting_head(rows)):
        del tensors["second"]
    frozen = first * cost.frozen.embedding[:, None] + last * cost.frozen.head[:, None]
    ends = units.root, last * cost.head_expert[:, None], frozen
    layers = cost.layer_dense, cost.layer_expert, cost.frozen.layer
    return tuple(_moment(name, states, layers, ends, parts) for name, (states, parts) in tensors.items())


def _moment(
    name: str,
    states: tuple[StateBytes, StateBytes],
    layers: tuple[Array, Array, Array],
    ends: tuple[Array, Array, Array],
    tensors: tuple[Array, Array, Array, Array],
) -> Moment:
    """One moment from its tensors and states.

    Dense and expert parameters, and frozen bytes, of ``layers`` [R, N] and of the ``ends`` [R, P].
    """
    kept, buffers, flight, replay = tensors
    dense, expert = (state.total[:, None] for state in states)
    return Moment(
        name=name,
        kept_bytes=kept,
        buffer_bytes=buffers,
        in_flight=flight,
        replay_bytes=replay,
        layer_state_bytes=layers[0] * dense + layers[1] * expert + layers[2],
        dense_state=states[0],
        expert_state=states[1],
        fixed_bytes=buffers + kept + ends[0] * dense + ends[1] * expert + ends[2],
    )


def _first_backward(
    rows: StrategyRows, cost: RowCost, terms: MomentTerms, units: Units, replay: Array
) -> tuple[Array, Array, Array]:
    """``passes_bytes`` with the 16-bit logits that a pipeline's stage holds on to; a split loss counts them already."""
    piped = (rows.pp > 1) & (rows.tp == 1)
    transient = cost.head_transient + np.where(piped, GRADIENT_BYTES * terms.logits, 0.0)
    freed = least_of_row(cost.relieved_bytes)[:, None]
    return passes_bytes(terms, units, (cost.head_saved, transient), freed, replay[:, None])


def _kept_by_stage(
    rows: StrategyRows, cost: RowCost, terms: MomentTerms, flight: Array, first: Array, last: Array
) -> Array:
    """Kept by the ends beside the micro-batch at the head, and what a pipeline's stages passed on: [R, P]."""
    piped = (rows.pp > 1).astype(np.float64)
    waiting = (cost.head_saved + piped * GRADIENT_BYTES * terms.logits) * (_waiting(rows) - 1.0)
    passed_on = (rows.vpp[:, None] - last) * (piped * terms.entry_bytes)[:, None]
    kept: Array = last * waiting[:, None] + flight * (first * cost.embedding_saved[:, None] + passed_on)
    return kept


def _units(rows: StrategyRows, cost: RowCost, terms: MomentTerms, first: Array, last: Array) -> Units:
    """FSDP units of every stage: [R, P]."""
    zero, several = cost.dense_parallel.zero[:, None], rows.num_microbatches[:, None] > 1
    root = first * cost.embedding_dense[:, None] + last * cost.head_dense[:, None]
    once = ~several & (rows.pp[:, None] == 1)
    # The embedding's gradient is accumulated for the whole vocabulary, of which the states count this rank's part.
    beyond = first * (cost.embedding_dense * (rows.tp - 1.0))[:, None]
    pending = terms.reduced_bytes[:, None] * np.where(zero >= 2, root, beyond) * several
    return Units(
        root=root,
        last=last,
        layer=most_of_row(cost.layer_dense + cost.layer_expert)[:, None],
        gathered=(zero >= 3).astype(np.float64),
        reduced=((zero >= 2) | once).astype(np.float64),
        pending_bytes=pending,
    )


def _received_bytes(rows: StrategyRows, terms: MomentTerms, flight: Array, first: Array, last: Array) -> Array:
    """Receive buffers of a pipeline, for every micro-batch and chunk, beside those that the layers keep: [R, P]."""
    chunks, microbatches = rows.vpp[:, None].astype(np.float64), rows.num_microbatches[:, None]
    forward = np.maximum(microbatches - flight, 0.0) * (chunks - first)
    backward = microbatches * (chunks - last)
    piped = rows.pp[:, None] > 1
    received: Array = np.where(piped, (forward + backward) * terms.entry_bytes[:, None], 0.0)
    return received
