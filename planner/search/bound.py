"""Lower bounds of the step time, and whether a strategy can fit at all, for thousands of strategies at once.

Lower bound of the step time of a strategy, over every way to deal its layers to stages and to relieve memory::

    step >= least makespan(sum, bottleneck, ...) + tail(mean parameters of a stage)     ``schedule.least_makespan``

* ``sum``: all layers and ends once, without relief: relief only adds time.
* ``bottleneck``: the smallest tau in which the stages together can hold all layers (``planner.search.stage_capacity``);
  layers are whole, so that some stage holds at least so many of the most frequent kind (``fullest_holds``).
* ``makespan`` and ``tail`` never fall when an argument grows (tested), and the busiest stage has at least the mean
  number of parameters.

The mean stage time counts all kinds of layers, the bottleneck the most frequent one.  Shape letters: R rows, P stages.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.predict.cost.data_parallel import optimizer_places_s
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.cost.short_axis import least_of_row
from planner.predict.cost.step_payload import DataParallelism
from planner.predict.memory.states import state_bytes
from planner.predict.schedule.least_makespan import least_makespan_s
from planner.search.chunk_family import fullest_holds
from planner.search.chunk_times import weight_gradients_s
from planner.search.row_context import take
from planner.strategy.rows import StrategyRows
from planner.strategy.schedules import SCHEDULE_NAMES, SPLIT_SCHEDULES, V_SCHEDULES
from solver.arrays import Array, Ints

Rows = Ints | slice
ALL = slice(None)

V_PLACED = np.array([int(name in V_SCHEDULES) for name in SCHEDULE_NAMES])
"""1 for every schedule whose chunks lie in a V."""
BACK_WHOLE = np.array([float(name not in SPLIT_SCHEDULES) for name in SCHEDULE_NAMES])
"""1 for every schedule whose backward passes are never split: the way back takes all of each."""
ROUNDING = 1e-12
"""Relative slack that keeps another order of the same sums below what the exact search finds."""
BY_SETUP = ("total_s", "gradient_s", "mean_dense", "mean_expert", "tail_s")
"""Terms that rows of one setup share."""


@dataclass(frozen=True, slots=True)
class Schedules:
    """What a makespan depends on beside seconds: columns as in ``StrategyRows``."""

    schedule: Ints
    num_microbatches: Ints
    pp: Ints
    vpp: Ints
    group: Ints

    @classmethod
    def of(cls, rows: StrategyRows, at: Rows = ALL) -> Schedules:
        """The columns of some rows."""
        return cls(*(getattr(rows, field.name)[at] for field in fields(cls)))


def makespan_s(rows: Schedules | StrategyRows, seconds: tuple[Array, Array, Array, Array, Array]) -> Array:
    """Least pipeline makespan of every row by its own schedule: [R]; ``seconds`` as ``least_makespan_s`` asks for."""
    result = np.empty(len(rows.schedule))
    for code in np.flatnonzero(np.bincount(rows.schedule)).tolist():
        at = np.flatnonzero(rows.schedule == code)
        total_s, longest_s, hop_s, chunk_s, gradient_s = (each[at] for each in seconds)
        sizes, times = (rows.num_microbatches[at], rows.pp[at]), (total_s, longest_s, hop_s, chunk_s, gradient_s)
        result[at] = least_makespan_s(SCHEDULE_NAMES[code], *sizes, times)
    return result


def least_chunk_s(schedules: Schedules | StrategyRows, cost: RowCost, num_layers: int, at: Rows = ALL) -> Array:
    """What a chunk of one of the devices 1 .. p-1 takes at least in the declared family: [R]; ``cost`` by ``at``."""
    whole = BACK_WHOLE[schedules.schedule]
    # Whichever are fewer: the rows picked, or those that they are picked from.
    first = not isinstance(at, slice) and len(at) > len(cost.layer_forward_s)
    forward_s, backward_s = (
        least_of_row(each)[at] if first else least_of_row(each[at])
        for each in (cost.layer_forward_s, cost.layer_backward_s)
    )
    layers = num_layers // (schedules.pp * schedules.vpp)
    return np.asarray(layers * (forward_s + whole * backward_s))


class BoundTerms:
    """The pieces of the bound for one batch of rows; ``leanest_tail``: the least of all leaves of cores or layouts."""

    def __init__(self, costs: CostModel, rows: StrategyRows, cost: RowCost, *, leanest_tail: bool = False) -> None:
        self.rows = rows
        self.cost = cost
        self.costs = costs
        counts = costs.kind_counts
        stages = rows.pp.astype(float)
        self.total_s = cost.layer_s @ counts + cost.embedding_s + cost.head_s + stages * cost.stage_host_s
        self.gradient_s = weight_gradients_s(cost, counts)
        self.major = int(np.argmax(counts))
        self.major_count = float(counts[self.major])
        self.mean_dense = (cost.layer_dense @ counts + cost.embedding_dense + cost.head_dense) / stages
        self.mean_expert = (cost.layer_expert @ counts + cost.head_expert) / stages
        if leanest_tail:
            self.tail_s = self._leanest_tail_s()
        else:
            dense_s, expert_s = costs.tail_parts_s(cost, self.mean_dense, self.mean_expert)
            self.tail_s = dense_s + expert_s
        self.all_count = self._all_count()

    def _all_count(self) -> bool:
        """Whether to count all layers, each as light as the lightest kind, and not those of the most frequent kind.

        Where that kind has no more than half of the layers, and they take no longer.
        """
        counted, layer_s = self.costs.kind_counts.sum(), self.cost.layer_s
        half = 2 * self.major_count <= counted
        return bool(half and counted * least_of_row(layer_s).sum() > self.major_count * layer_s[:, self.major].sum())

    def under(self, rows: StrategyRows, setup: Ints, loose_s: Array) -> BoundTerms:
        """The terms of ``rows``, whose setups (``planner.search.setups``) are the rows ``setup`` of these."""
        picked = copy(self)
        picked.rows, picked.loose_s = rows, loose_s
        picked.cost = take(self.cost, setup).under_schedules(rows)
        for name in BY_SETUP:
            setattr(picked, name, getattr(self, name)[setup])
        return picked

    def taken(self, at: Ints) -> BoundTerms:
        """The terms of some of the rows."""
        picked = copy(self)
        picked.rows, picked.cost = self.rows.take(at), take(self.cost, at)
        for name in BY_SETUP:
            setattr(picked, name, getattr(self, name)[at])
        return picked

    @cached_property
    def loose_s(self) -> Array:
        """Lower bound that ignores memory: [R]."""
        return self.loose_under_s(Schedules.of(self.rows))

    def loose_under_s(self, schedules: Schedules, setup: Rows = ALL, relief_s: Array | None = None) -> Array:
        """``loose_s`` of rows whose setups are the rows ``setup`` of these, under schedules of their own.

        With every layer relieved, which takes ``relief_s`` [R, N] longer, where that is given.
        """
        total_s = self.total_s[setup] if relief_s is None else self.total_s[setup] + relief_s @ self.costs.kind_counts
        peak_s = np.maximum(total_s / schedules.pp, self._fullest_s(schedules, setup, relief_s))
        chunk_s = least_chunk_s(schedules, self.cost, self.costs.model.num_layers, setup)
        seconds = total_s, peak_s, self.cost.hop_s[setup], chunk_s, self.gradient_s[setup]
        return makespan_s(schedules, seconds) + self.tail_s[setup]

    def least_peak_s(self, schedules: Schedules, setup: Rows = ALL) -> Array:
        """What the busiest stage takes at least, whatever is relieved: the mean, and the layers that one must hold."""
        return np.asarray(np.maximum(self.total_s[setup] / schedules.pp, self._fullest_s(schedules, setup)))

    def _fullest_s(self, schedules: Schedules, setup: Rows, relief_s: Array | None = None) -> Array:
        """Seconds of the most frequent layers on the stage with most of them: [R]."""
        layer_s = (self.cost.layer_forward_s[:, self.major] + self.cost.layer_backward_s[:, self.major])[setup]
        if relief_s is not None:
            layer_s = layer_s + relief_s[:, self.major]
        held_s = layer_s * self._fullest(schedules) + self.cost.stage_host_s[setup]
        return np.asarray(held_s * (1.0 - ROUNDING))

    def _fullest(self, schedules: Schedules) -> Array:
        """Layers of the most frequent kind on the stage with most of them, at least: [R]."""
        kinds, most = self.costs.kind_sequence, int(schedules.vpp.max(initial=0)) + 1
        code = (schedules.pp * most + schedules.vpp) * 2 + V_PLACED[schedules.schedule]
        counts = np.bincount(code).astype(float)
        for each in np.flatnonzero(counts).tolist():
            (pp, vpp), bent = divmod(each // 2, most), each % 2
            counts[each] = fullest_holds(kinds, self.major, pp, vpp, v_placed=bool(bent))
        return np.asarray(counts[code])

    def _leanest_tail_s(self) -> Array:
        """What no leaf of a layout can go below once a step: the optimizer on fully sharded states: [R]."""
        seconds = np.zeros(len(self.rows))
        for parameters, parallel in (
            (self.mean_dense, self.cost.dense_parallel),
            (self.mean_expert, self.cost.expert_parallel),
        ):
            local = parameters / np.maximum(parallel.ranks, 1.0)
            places_s = optimizer_places_s(local, self.costs.workload, self.costs.hardware)
            seconds += np.minimum(*places_s)
        return seconds

    def offload_s(self) -> Array:
        """Seconds that ``loose_s`` is longer with the optimizer on the host instead of on the device: [R]."""
        change_s = np.zeros(len(self.rows))
        for parameters, parallel in (
            (self.mean_dense, self.cost.dense_parallel),
            (self.mean_expert, self.cost.expert_parallel),
        ):
            device_s, host_s = optimizer_places_s(
                parameters / parallel.shards, self.costs.workload, self.costs.hardware
            )
            change_s += host_s - device_s
        return change_s

    def leanest_bytes(self) -> Array:
        """What some device needs under every leaf of a core: [R].

        Weights, gradients and optimizer sharded over all ranks and offloaded.  Each device but the ends of a pipeline,
        which some back-ends leave without layers, also holds the activations of one layer, kept or being replayed, and
        one of them those of the head, or of a layer where that needs more.  The fullest device needs at least what the
        mean one does, and at least what the head's device does.
        """
        cost, pp = self.cost, self.rows.pp
        dense_bytes, expert_bytes = self.leanest_state_bytes()
        kept, alone = least_of_row(cost.saved_bytes), pp == 1
        head_activations = np.maximum(cost.head_saved + cost.head_transient, kept * alone)
        activations = (kept * np.maximum(pp - 2, 0) + head_activations) / pp
        mean = self.mean_dense * dense_bytes + self.mean_expert * expert_bytes + activations
        frozen = cost.frozen
        mean = mean + (frozen.least_layer @ self.costs.kind_counts + frozen.least_embedding + frozen.least_head) / pp
        layer = cost.layer_dense * dense_bytes[:, None] + cost.layer_expert * expert_bytes[:, None] + frozen.least_layer
        head = cost.head_dense * dense_bytes + cost.head_expert * expert_bytes + frozen.least_head + head_activations
        leanest: Array = cost.fixed_bytes + np.maximum(mean, head + least_of_row(layer) * alone)
        return leanest

    def leanest_state_bytes(self) -> tuple[Array, Array]:
        """Bytes a dense and an expert parameter on the device under every leaf of the rows: two [R]."""
        return self._leanest_state_bytes(self.cost.dense_parallel), self._leanest_state_bytes(self.cost.expert_parallel)

    def _leanest_state_bytes(self, parallel: DataParallelism) -> Array:
        """Bytes a parameter on the device under ZeRO-3 over all ranks with the optimizer on the host: [R].

        Where moments are billed apart, gradients may not exist yet when the activations are largest; DeepSpeed's follow
        the optimizer to the host.
        """
        ones, ranks = np.ones(len(self.rows), dtype=np.int64), np.maximum(parallel.ranks, 1.0)
        physics = self.costs.hardware.physics
        leanest = state_bytes(self.costs.workload, 3 * ones, ranks, ones, physics)
        later = physics.moments_apart or physics.reduce_bucket_elements > 0.0
        return leanest.weights if later else leanest.total

    def mean_state_bytes(self) -> Array:
        """What the mean device needs for its states alone, whatever is relieved: [R]."""
        cost, frozen = self.cost, self.cost.frozen
        states: Array = self.mean_dense * cost.dense_state.total + self.mean_expert * cost.expert_state.total
        held = frozen.layer @ self.costs.kind_counts + frozen.embedding + frozen.head
        return np.asarray(states + held / self.rows.pp)

    def step_s(self, bottleneck_s: Array, at: NDArray[np.int64]) -> Array:
        """Lower bound of the rows ``at`` for a known bottleneck."""
        schedules = Schedules.of(self.rows, at)
        chunk_s = least_chunk_s(schedules, self.cost, self.costs.model.num_layers, at)
        seconds = self.total_s[at], bottleneck_s, self.cost.hop_s[at], chunk_s, self.gradient_s[at]
        return makespan_s(schedules, seconds) + self.tail_s[at]
