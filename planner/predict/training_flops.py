"""The useful FLOPs of a step as the model is trained: the numerator of model-FLOPs utilization.

With ``F`` the forward pass of a token: ``3 F`` where all weights learn (``planner.model.flops``); of a frozen matmul
``2 F``, of adapters and of attention, which has no weights, ``3 F``.  A reference model adds its forward pass, ``F``;
pairs count both their sequences.  Padding is not useful: real tokens count, each with the context of its document.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.flops import (
    Documents,
    forward_flops,
    model_flops_per_token,
    tower_flops_per_item,
)
from planner.model.operator import Operator
from planner.model.operators import embedding_operators, head_operators, layer_operators, mtp_operators
from planner.model.spec import ModelSpec
from planner.predict.packed_rows import documents_of, real_tokens_per_step
from planner.predict.trained_operators import paired_head, passed_over, trained_operators
from planner.question.problem import Workload
from planner.question.source import source_of


def step_flops(model: ModelSpec, workload: Workload) -> float:
    """Useful FLOPs of one step of all devices, the towers' among them."""
    flops = training_flops_per_token(model, workload) * real_tokens_per_step(workload)
    for tower in model.towers:
        # A frozen tower runs forward alone.
        passes = 1.0 / 3.0 if workload.trained.freezes(tower.modality) else 1.0
        items = workload.items_per_sample(tower.modality) * workload.global_batch_size
        flops += passes * tower_flops_per_item(tower) * items
    return flops


def training_flops_per_token(model: ModelSpec, workload: Workload) -> float:
    """Useful FLOPs of one real token of one sequence."""
    training, sequence = workload.trained, _documents(workload)
    source = None
    two = model.encoder is not None or model.denoiser is not None or model.crossed_modality
    if two and isinstance(sequence, int):
        source = source_of(model, workload)
    whole = model_flops_per_token(model, sequence, source_length=source)
    for run in model.layer_runs:
        if passed_over(model, run.kind, workload):
            idle = (forward_flops(each, sequence, source_length=source) for each in layer_operators(model, run.kind))
            whole -= 3.0 * run.count * sum(idle)
    if not training.adapters and training.task != "reward" and not training.runs_reference:
        return whole
    head = paired_head(head_operators(model), training)
    parts: list[tuple[int, Sequence[Operator]]] = [(1, embedding_operators(model)), (1, head)]
    parts += [(run.count, layer_operators(model, run.kind)) for run in model.layer_runs]
    if model.mtp is not None:
        modules = (*mtp_operators(model), *layer_operators(model, model.mtp.kind), *head)
        parts.append((model.mtp.num_layers, modules))
    flops = 0.0
    for count, plain in parts:
        flops += count * sum(_flops(each, sequence) for each in trained_operators(plain, training))
        if training.runs_reference:
            flops += count * sum(forward_flops(each, sequence) for each in plain)
    return flops


def _documents(workload: Workload) -> int | Documents:
    """What attention stays within: the sequence, or the documents that it holds."""
    if workload.sequences is None:
        return workload.sequence_length
    return documents_of(workload.sequences, workload.sequence_length)


def _flops(operator: Operator, sequence_length: int | Documents) -> float:
    """Forward and backward of one operator."""
    passes = 2.0 if operator.frozen and operator.op_class != "attention" else 3.0
    return passes * forward_flops(operator, sequence_length)
