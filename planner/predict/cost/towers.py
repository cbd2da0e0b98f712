"""The towers in front of a language model: on the first stage, patches or frames of an item a sequence of their own.

Shape letter: K keys.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.mixers.tower_cross import TowerCrossSpec
from planner.model.operators import tower_operators
from planner.model.spec import ModelSpec, TowerRun
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.layer import OperatorSum, add_launches, launch_floor_s, operator_sum, working_bytes
from planner.predict.cost.uneven_items import fullest_items
from planner.predict.layer_keys import LayerKeys, whole_keys
from planner.predict.memory.activations import ELEMENT_BYTES
from planner.predict.trained_operators import WIDE_BYTES
from planner.question.item_counts import ItemCounts
from planner.question.problem import Workload
from solver.arrays import Array


def add_towers(
    sums: OperatorSum,
    launches_s: tuple[Array, Array],
    model: ModelSpec,
    workload: Workload,
    keys: LayerKeys,
    hardware: Hardware,
) -> Array:
    """Add the towers to the first stage.  Returns the bytes that they keep: [K].

    A frozen tower stands before everything that learns: it runs forward alone and keeps nothing.
    """
    kept = np.zeros(len(keys))
    for tower in model.towers:
        items, frozen = workload.items_per_sample(tower.modality), workload.trained.freezes(tower.modality)
        counts = workload.counts_of(tower.modality)
        most = items * fullest_items(counts, keys.micro_batch_size)
        for run in tower.runs:
            units, plain = tower_keys(keys, run, _of_fullest(keys, items, counts)), tower_operators(run)
            operators = tuple(replace(operator, frozen=True) for operator in plain) if frozen else plain
            one = operator_sum(operators, units, hardware)
            sums.add_weights(one, run.count)
            if not items:
                continue
            if frozen:
                _add_forward(sums, launches_s, one, launch_floor_s(operators, units, hardware)[0], run.count)
                continue
            sums.add_times(one, run.count)
            add_launches(launches_s, operators, units, hardware, run.count)
            kept = kept + run.count * working_bytes(operators, tower_keys(keys, run, most))
        if tower.modality == model.crossed_modality:
            # The layers that attend to the tower project its tokens each; what they read is kept once.
            tokens = items * tower.tokens_per_item * keys.micro_batch_size
            kept = kept + ELEMENT_BYTES * tokens * _crossed_width(model)
        if frozen:
            sums.frozen_dense_bytes += WIDE_BYTES * tower.extra_parameters
        else:
            sums.dense_parameters += tower.extra_parameters
        ends_flops = tower.ends_flops_per_item * _of_fullest(keys, items, counts) * keys.micro_batch_size
        ends_s = ends_flops / hardware.rates.matmul_flops_per_s * hardware.factors.compute
        sums.forward_s += ends_s
        sums.input_gradient_s += 0.0 if frozen else ends_s
        sums.weight_gradient_s += 0.0 if frozen else ends_s
    return kept


def _crossed_width(model: ModelSpec) -> int:
    """Features of a tower's token as the layers that attend to it read them."""
    mixers = (kind.attention for kind in model.layer_kinds)
    return max(mixer.source_width for mixer in mixers if isinstance(mixer, TowerCrossSpec))


def _add_forward(
    sums: OperatorSum, launches_s: tuple[Array, Array], layer: OperatorSum, launch_s: Array, count: int
) -> None:
    """Add the forward pass of ``count`` layers; ``launch_s``: host seconds of one."""
    sums.forward_s += count * layer.forward_s
    sums.communication_forward_s += count * layer.communication_forward_s
    # Towers are dense and whole: their only collectives are those of tensor parallelism.
    sums.tp_s += count * layer.communication_forward_s
    launches_s[0][:] += count * launch_s


def _of_fullest(keys: LayerKeys, items: float, counts: ItemCounts | None) -> Array | float:
    """Items of a sample on the rank that the others wait for: [K] where samples have unequal numbers."""
    return items if counts is None else items * (1.0 + counts.variation * keys.spread)


def tower_keys(keys: LayerKeys, run: TowerRun, items: Array | float) -> LayerKeys:
    """Sharding of layers of a tower: items are whole on every rank, and dense.

    Sequence parallelism and overlapped collectives are the language model's alone (NVIDIA/Megatron-LM d98e8a64:
    examples/multimodal/model.py:216-222, examples/mimo/model_providers/nemotron_moe_vlm.py:164).
    """
    ones, none = np.ones(len(keys)), np.zeros(len(keys))
    return replace(
        whole_keys(keys),
        sp=none,
        overlap_tp=none,
        cp=ones,
        ep=ones,
        etp=ones,
        micro_batch_size=keys.micro_batch_size * np.where(np.asarray(items) > 0, items, 1.0),
        sequence_length=run.units_per_item,
    )
