"""What a tower costs on a grid of its own: tensor-parallel groups, each of which takes a part of the samples.

A micro-batch of ``S`` samples meets ``tp x dp`` devices::

    samples a rank    S / dp                                  whole samples
    time              layers + ends of S / dp samples         ``planner.predict.cost.towers``
    late              exposed reduction over dp + optimizer   (distributed optimizer)
    memory            states + f kept + framework + buffers   f micro-batches in flight

Its operators, rates, collectives and states are those of a tower on the language model's first stage.  Towers recompute
nothing.  Shape letter: K layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.model.spec import ModelSpec, Tower
from planner.predict.cost.data_parallel import tail_s
from planner.predict.cost.hardware import COMMUNICATOR_BYTES, FRAMEWORK_BYTES, Hardware
from planner.predict.cost.layer import OperatorSum
from planner.predict.cost.step_payload import parallelisms
from planner.predict.cost.towers import add_towers
from planner.predict.cost.uneven_items import item_spread
from planner.predict.layer_keys import LayerKeys
from planner.predict.memory.activations import ELEMENT_BYTES
from planner.predict.memory.states import state_bytes
from planner.question.problem import Workload
from planner.search.towers.problem import with_tower_alone
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from solver.arrays import Array

HANDED_OVER = 6.0
"""Tensors between two stages that one holds, as of a pipeline stage (``planner.predict.cost.fixed_bytes``)."""


@dataclass(frozen=True, slots=True)
class TowerLayout:
    """The grid of a tower, and how many samples all of it takes at a time."""

    tp: int
    dp: int
    samples: int

    @property
    def devices(self) -> int:
        """Devices of the grid."""
        return self.tp * self.dp

    @property
    def samples_per_rank(self) -> int:
        """Samples of a micro-batch that one data-parallel rank takes."""
        return self.samples // self.dp


@dataclass(frozen=True, slots=True)
class TowerBill:
    """Time and memory of one device of a tower; a micro-batch's activations are ``kept_bytes``."""

    layout: TowerLayout
    forward_s: float
    backward_s: float
    late_s: float
    parameters: float
    weights_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    kept_bytes: float
    framework_bytes: float
    entry_bytes: float

    @property
    def microbatch_s(self) -> float:
        """Forward and backward of one micro-batch."""
        return self.forward_s + self.backward_s

    def beside_bytes(self, in_flight: int) -> float:
        """Memory without the framework's own: what it adds to a device that trains something else, too."""
        states = self.weights_bytes + self.gradients_bytes + self.optimizer_bytes
        return states + in_flight * self.kept_bytes + HANDED_OVER * self.entry_bytes

    def total_bytes(self, in_flight: int) -> float:
        """Peak memory of a device that holds the tower alone."""
        return self.framework_bytes + self.beside_bytes(in_flight)


def tower_layouts(tower: Tower, devices: int, samples: int) -> list[TowerLayout]:
    """Every grid of so many devices that splits heads, MLP and the samples of a micro-batch evenly."""
    return [
        TowerLayout(tp, devices // tp, samples)
        for tp in range(1, devices + 1)
        if devices % tp == 0 and samples % (devices // tp) == 0 and _splits(tower, tp)
    ]


def _splits(tower: Tower, tp: int) -> bool:
    return all(
        run.layer.attention.num_heads % tp == 0 and (run.layer.mlp is None or run.layer.mlp.intermediate_size % tp == 0)
        for run in tower.runs
    )


def tower_bills(
    model: ModelSpec, tower: Tower, workload: Workload, hardware: Hardware, layouts: Sequence[TowerLayout]
) -> list[TowerBill]:
    """Cost every layout."""
    if not layouts:
        return []
    rows = _rows(layouts, workload)
    keys = _keys(layouts, workload, item_spread(rows, workload))
    sums, launches_s = OperatorSum.zeros(len(layouts)), (np.zeros(len(layouts)), np.zeros(len(layouts)))
    kept = add_towers(sums, launches_s, with_tower_alone(model, tower), workload, keys, hardware)
    parallel, _ = parallelisms(rows, np.zeros(len(rows)), np.ones(len(rows)))
    state = state_bytes(workload, rows.zero, parallel.shards, rows.optimizer_offload, hardware.physics)
    learning, late_s = sums.dense_parameters, np.zeros(len(rows))
    if np.any(learning > 0):
        windows = sums.forward_s, sums.backward_s
        exposed_s, optimizer_s = tail_s(learning, parallel, workload, hardware, *windows)
        late_s = exposed_s + optimizer_s
    columns = {
        "forward_s": np.maximum(sums.forward_s + sums.communication_forward_s, launches_s[0]),
        "backward_s": np.maximum(sums.backward_s + sums.communication_backward_s, launches_s[1]),
        "late_s": late_s,
        "parameters": learning,
        "weights_bytes": learning * state.weights + sums.frozen_dense_bytes,
        "gradients_bytes": learning * state.gradients,
        "optimizer_bytes": learning * state.optimizer,
        "kept_bytes": kept * hardware.factors.fragmentation * hardware.physics.kept_fragmentation,
        "framework_bytes": _framework_bytes(rows, hardware),
        "entry_bytes": keys.micro_batch_size * sample_bytes(model, tower, workload),
    }
    return [
        TowerBill(layout, **{name: float(column[index]) for name, column in columns.items()})
        for index, layout in enumerate(layouts)
    ]


def sample_bytes(model: ModelSpec, tower: Tower, workload: Workload) -> float:
    """Bytes of what a tower hands to the language model for one sample: its tokens in 16 bit, projected."""
    return ELEMENT_BYTES * workload.items_per_sample(tower.modality) * tower.tokens_per_item * model.hidden_size


def _framework_bytes(rows: StrategyRows, hardware: Hardware) -> Array:
    """What a process of the training software holds, with communicators of tp, dp and the bridge."""
    groups: Array = np.ones(len(rows)) + (rows.tp > 1) + (rows.dp > 1)
    return FRAMEWORK_BYTES + hardware.factors.fixed_bytes + COMMUNICATOR_BYTES * groups


def _rows(layouts: Sequence[TowerLayout], workload: Workload) -> StrategyRows:
    strategies = [
        Strategy(
            tp=each.tp,
            dp_shard=each.dp,
            micro_batch_size=each.samples_per_rank,
            num_microbatches=workload.global_batch_size // each.samples,
            zero_stage=1,
        )
        for each in layouts
    ]
    return StrategyRows.of(strategies, [Relief()])


def _keys(layouts: Sequence[TowerLayout], workload: Workload, spread: Array) -> LayerKeys:
    ones, none = np.ones(len(layouts)), np.zeros(len(layouts))
    sequences = workload.trained.sequences_per_sample
    return LayerKeys(
        tp=np.array([float(each.tp) for each in layouts]),
        sp=none,
        cp=ones,
        ring=none,
        ep=ones,
        etp=ones,
        micro_batch_size=np.array([float(each.samples_per_rank * sequences) for each in layouts]),
        overlap_tp=none,
        overlap_ep=none,
        sequence_length=workload.sequence_length,
        spread=spread,
    )
