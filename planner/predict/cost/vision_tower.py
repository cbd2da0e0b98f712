"""The vision tower in front of a language model: on the first stage, its patches a sequence of their own.

Shape letter: K keys.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.operator import Operator
from planner.model.operators import vision_operators
from planner.model.spec import ModelSpec, VisionSpec
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.layer import OperatorSum, add_launches, operator_sum, working_bytes
from planner.predict.layer_keys import LayerKeys, whole_keys
from planner.predict.trained_operators import WIDE_BYTES
from planner.question.problem import Workload
from solver.arrays import Array


def add_vision(
    sums: OperatorSum,
    launches_s: tuple[Array, Array],
    model: ModelSpec,
    workload: Workload,
    keys: LayerKeys,
    hardware: Hardware,
) -> Array:
    """The vision tower runs on the first stage; its patches are a sequence of their own.  Returns kept bytes."""
    vision = model.vision
    if vision is None:
        return np.zeros(len(keys))
    images, frozen = workload.images_per_sample, workload.trained.adapters
    patches = patch_keys(keys, vision, images)
    kept = np.zeros(len(keys))
    for count, plain in vision_layers(model, vision):
        # Adapters stand in the language model alone; the tower is a frozen part of its input.
        operators = tuple(replace(operator, frozen=True) for operator in plain) if frozen else plain
        one = operator_sum(operators, patches, hardware)
        sums.add_weights(one, count)
        if images:
            sums.add_times(one, count)
            add_launches(launches_s, operators, patches, hardware, count)
            kept = kept + count * working_bytes(operators, patches)
    if frozen:
        sums.frozen_dense_bytes += WIDE_BYTES * vision.extra_parameters
    else:
        sums.dense_parameters += vision.extra_parameters
    projector_flops = vision.projector_flops_per_image * images * keys.micro_batch_size
    projector_s = projector_flops / hardware.rates.matmul_flops_per_s * hardware.factors.compute
    sums.forward_s += projector_s
    sums.input_gradient_s += projector_s
    sums.weight_gradient_s += 0.0 if frozen else projector_s
    return kept


def patch_keys(keys: LayerKeys, vision: VisionSpec, images: int) -> LayerKeys:
    """Sharding of the vision tower: images are whole on every rank, and dense."""
    ones = np.ones(len(keys))
    return replace(
        whole_keys(keys),
        cp=ones,
        ep=ones,
        etp=ones,
        micro_batch_size=keys.micro_batch_size * max(images, 1),
        sequence_length=vision.patches_per_image,
    )


def vision_layers(model: ModelSpec, vision: VisionSpec) -> tuple[tuple[int, tuple[Operator, ...]], ...]:
    """Layers of the vision tower by kind: how many, and their operators."""
    windowed = vision.num_windowed_layers
    kinds = (
        (vision.num_layers - windowed, vision_operators(model)),
        (windowed, vision_operators(model, windowed=True)),
    )
    return tuple((count, operators) for count, operators in kinds if count)
