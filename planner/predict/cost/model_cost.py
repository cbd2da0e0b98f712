"""The costs of the parts of the model, for every sharding key at once.

``ModelCost`` holds, for each layer kind and for the two ends of the model, the times, parameters and bytes of one
micro-batch on one device.  Shape letters: K keys, N layer kinds, R reliefs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.model.operator import Operator
from planner.model.operators import embedding_operators, head_operators, mtp_operators
from planner.model.spec import ModelSpec
from planner.predict.cost.as_run import keys_as_run
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.layer import (
    OperatorSum,
    add_launches,
    attention_seconds_of,
    launch_floor_s,
    layer_kind,
    operator_sum,
    passes_with_launches_s,
    saved_and_extra,
    working_bytes,
)
from planner.predict.cost.payload import vocabulary_bytes
from planner.predict.cost.reference_model import reference_end, reference_layers, with_reference
from planner.predict.cost.towers import add_towers
from planner.predict.cost.two_sequences import encoder_end_bytes, keys_by_kind, widths_of
from planner.predict.layer_keys import LayerKeys
from planner.predict.memory.activations import ELEMENT_BYTES, layer_input_bytes, saved_bytes, saved_bytes_of_operator
from planner.predict.memory.backward import backward_working_bytes, local_parameters
from planner.predict.memory.exchange_buffers import standing_exchange_bytes
from planner.predict.memory.framework_memory import with_eight_bit_experts, with_eight_bit_inputs, with_framework_kept
from planner.predict.trained_operators import WIDE_BYTES, layer_as_run, paired_head, trained_operators
from planner.question.problem import Workload
from planner.strategy.strategy import Relief
from solver.arrays import Array, Ints

KEYS_AT_A_TIME = 16_384
"""Keys whose layers are timed at a time: their columns stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class LayerTable:
    """Costs of the layer kinds: float64[K, N], with a leading R where a relief matters.

    Parameters are those that learn; of frozen weights there are bytes, before any sharding over data-parallel ranks.
    """

    forward_s: Array
    backward_s: Array
    host_s: Array
    weight_gradient_s: Array
    forward_compute_s: Array
    compute_s: Array
    attention_forward_s: Array
    attention_backward_s: Array
    """Of attention alone; zero where no documents are packed."""
    tp_s: Array
    cp_s: Array
    ep_s: Array
    dense_parameters: Array
    expert_parameters: Array
    frozen_dense_bytes: Array
    frozen_expert_bytes: Array
    reference_dense_bytes: Array
    reference_expert_bytes: Array
    widened_bytes: Array
    """16-bit copy of the largest quantised matrix."""
    saved_bytes: Array
    relief_s: Array
    working_bytes: Array
    """Alive while a layer runs backward, beyond what it keeps; zero where one moment stands for all."""

    @property
    def total_s(self) -> Array:
        """Forward and backward of one layer, with exposed tp, cp, ep communication and waits for the host: [K, N]."""
        return self.forward_s + self.backward_s

    @property
    def backward_compute_s(self) -> Array:
        """Backward of one layer without communication: [K, N]."""
        return self.compute_s - self.forward_compute_s


@dataclass(frozen=True, slots=True)
class EndTable:
    """Costs of one end of the model (embedding side or head side): float64[K]."""

    forward_s: Array
    backward_s: Array
    weight_gradient_s: Array
    host_s: Array
    compute_s: Array
    tp_s: Array
    cp_s: Array
    ep_s: Array
    dense_parameters: Array
    expert_parameters: Array
    frozen_dense_bytes: Array
    frozen_expert_bytes: Array
    reference_dense_bytes: Array
    reference_expert_bytes: Array
    saved_bytes: Array
    transient_bytes: Array

    @property
    def total_s(self) -> Array:
        """Forward and backward: [K]."""
        return self.forward_s + self.backward_s


@dataclass(frozen=True, slots=True)
class ModelCost:
    """Everything the search needs to know about the model on this hardware."""

    keys: LayerKeys
    layers: LayerTable
    embedding: EndTable
    head: EndTable
    entry_bytes: Array
    """The tensor between two layers (and between two stages): [K]."""
    exchange_bytes: Array  # what the exchange of routed tokens holds all the time: [K]
    table_copy_parameters: Array
    """Part of the head's parameters that is a copy of the token table, where the two are on different stages: [K]."""
    table_copy_bytes: Array  # the same of its frozen bytes: [K]
    head_inputs_bytes: Array  # part of what the head keeps that is not of logits: [K]
    logits: Array  # of a micro-batch: [K]

    def of_layers(self, key: Ints, kind_counts: Array) -> Array:
        """Part of the model's dense parameters that its layers have: [R]."""
        ends = self.embedding.dense_parameters[key] + self.head.dense_parameters[key]
        return np.asarray(1.0 - ends / np.maximum(ends + self.layers.dense_parameters.take(key, 0) @ kind_counts, 1.0))


def model_cost(
    model: ModelSpec, workload: Workload, hardware: Hardware, keys: LayerKeys, reliefs: Sequence[Relief]
) -> ModelCost:
    """Cost every layer kind and both ends for all keys."""
    keys, kinds = keys_as_run(keys, model, hardware), _kinds(model, workload, hardware)
    layers = _layer_table(kinds, keys_by_kind(model, keys), hardware, reliefs, widths_of(model))
    copied = _table_copy_parameters(model, workload, keys)
    return ModelCost(
        keys=keys,
        layers=with_reference(layers, reference_layers(model, workload, keys, hardware)),
        embedding=_embedding(model, workload, keys, hardware),
        head=_head(model, workload, kinds, keys, hardware),
        entry_bytes=layer_input_bytes(keys, model.stream_size),
        exchange_bytes=standing_exchange_bytes(model, keys),
        table_copy_parameters=copied[0],
        table_copy_bytes=copied[1],
        head_inputs_bytes=_head_inputs_bytes(_head_operators(model, workload, hardware), keys, hardware),
        logits=_logits(model, workload, keys),
    )


def layer_seconds(model: ModelSpec, workload: Workload, hardware: Hardware, keys: LayerKeys) -> Array:
    """``LayerTable.total_s`` alone: [K, N]."""
    keys, kinds = keys_as_run(keys, model, hardware), _kinds(model, workload, hardware)
    seconds = np.empty((len(keys.tp), len(kinds)))
    for start in range(0, len(seconds), KEYS_AT_A_TIME):
        some = keys.slice(start, start + KEYS_AT_A_TIME)
        for number, (operators, here) in enumerate(zip(kinds, keys_by_kind(model, some), strict=True)):
            kind = layer_kind(operators, here, hardware)
            seconds[start : start + KEYS_AT_A_TIME, number] = kind.forward_s + kind.backward_s
        for number, reference in enumerate(reference_layers(model, workload, some, hardware)):
            seconds[start : start + KEYS_AT_A_TIME, number] += reference.forward_s
    return seconds


def _kinds(model: ModelSpec, workload: Workload, hardware: Hardware) -> list[Sequence[Operator]]:
    """The operators of each layer kind."""
    kinds = range(len(model.layer_kinds))
    trained = [_as_trained(layer_as_run(model, kind, workload), workload, hardware) for kind in kinds]
    kept = [with_framework_kept(operators, hardware.physics) for operators in trained]
    each = hardware.rates.narrow_bytes
    if hardware.eight_bit_inputs:
        kept = [with_eight_bit_inputs(operators, each) for operators in kept]
    return [with_eight_bit_experts(operators, each) for operators in kept] if hardware.eight_bit_experts else list(kept)


def _as_trained(operators: Sequence[Operator], workload: Workload, hardware: Hardware) -> tuple[Operator, ...]:
    return trained_operators(operators, workload.trained, fused=not hardware.physics.eager_pointwise)


def _head_operators(model: ModelSpec, workload: Workload, hardware: Hardware) -> tuple[Operator, ...]:
    return _as_trained(paired_head(head_operators(model), workload.trained), workload, hardware)


def _logits(model: ModelSpec, workload: Workload, keys: LayerKeys) -> Array:
    """Elements of the logits of a micro-batch; a reward model has none: [K]."""
    return model.vocab_size * keys.tokens / keys.tp * float(workload.trained.task != "reward")


def _widened_bytes(operators: Sequence[Operator], keys: LayerKeys) -> Array:
    """16-bit copy of the largest matrix that is dequantised for a product: [K]."""
    passes = [replace(op, parameters=op.passed_weights) for op in operators if op.op_class == "weight_pass"]
    found = [WIDE_BYTES * local_parameters(each, keys) for each in passes]
    return np.max(found, axis=0) if found else np.zeros(len(keys))


def _layer_table(
    kinds: Sequence[Sequence[Operator]],
    keyed: Sequence[LayerKeys],
    hardware: Hardware,
    reliefs: Sequence[Relief],
    widths: Sequence[int],
) -> LayerTable:
    costed = [layer_kind(operators, keys, hardware) for operators, keys in zip(kinds, keyed, strict=True)]
    sums = [kind.sums for kind in costed]
    relieved = [
        [saved_and_extra(kind, keys, hardware, relief, width) for relief in reliefs]
        for kind, keys, width in zip(costed, keyed, widths, strict=True)
    ]
    # Row by row, as rows are picked: of any other layout NumPy copies the whole table for every pick.
    kept, relief_s = np.ascontiguousarray(np.array(relieved).transpose(2, 1, 3, 0))

    def stack(name: str) -> Array:
        return np.stack([getattr(total, name) for total in sums], axis=1)

    attention = [attention_seconds_of(kind, keys, hardware) for kind, keys in zip(costed, keyed, strict=True)]
    return LayerTable(
        forward_s=np.stack([kind.forward_s for kind in costed], axis=1),
        backward_s=np.stack([kind.backward_s for kind in costed], axis=1),
        host_s=np.stack([kind.stall_s for kind in costed], axis=1),
        weight_gradient_s=_apart_s(stack("weight_gradient_s"), hardware),
        forward_compute_s=stack("forward_s"),
        compute_s=stack("forward_s") + stack("backward_s"),
        attention_forward_s=np.stack([each[0] for each in attention], axis=1),
        attention_backward_s=np.stack([each[1] for each in attention], axis=1),
        tp_s=stack("tp_s"),
        cp_s=stack("cp_s"),
        ep_s=stack("ep_s"),
        dense_parameters=stack("dense_parameters"),
        expert_parameters=stack("expert_parameters"),
        frozen_dense_bytes=stack("frozen_dense_bytes"),
        frozen_expert_bytes=stack("frozen_expert_bytes"),
        reference_dense_bytes=np.zeros((len(keyed[0]), len(kinds))),
        reference_expert_bytes=np.zeros((len(keyed[0]), len(kinds))),
        widened_bytes=np.stack([_widened_bytes(operators, keyed[0]) for operators in kinds], axis=1),
        saved_bytes=kept * _fragmentation(hardware),
        relief_s=relief_s,
        working_bytes=_working_bytes(kinds, keyed, hardware, widths),
    )


def _working_bytes(
    kinds: Sequence[Sequence[Operator]], keyed: Sequence[LayerKeys], hardware: Hardware, widths: Sequence[int]
) -> Array:
    """Bytes alive in the backward pass of each layer kind beyond what it keeps: [K, N]."""
    if not hardware.physics.moments_apart:
        return np.zeros((len(keyed[0]), len(kinds)))
    working = [
        backward_working_bytes(operators, keys, width)
        for operators, keys, width in zip(kinds, keyed, widths, strict=True)
    ]
    return np.stack(working, axis=1) * _fragmentation(hardware)


def _apart_s(weight_gradient_s: Array, hardware: Hardware) -> Array:
    """The part of the backward pass that a schedule may run later; nothing where the back-end splits no pass."""
    return weight_gradient_s if hardware.physics.splits_backward else np.zeros_like(weight_gradient_s)


def _fragmentation(hardware: Hardware) -> float:
    """Bytes of memory for each byte of activations."""
    return hardware.factors.fragmentation * hardware.physics.kept_fragmentation


def _end(
    sums: OperatorSum, saved: Array, transient: Array, hardware: Hardware, launches_s: tuple[Array, Array]
) -> EndTable:
    """One end of the model; ``launches_s``: what its kernels cost the host, forward and backward."""
    forward_s, backward_s = passes_with_launches_s(sums, launches_s, hardware)
    return EndTable(
        forward_s=forward_s,
        backward_s=backward_s,
        host_s=forward_s - sums.whole_forward_s + backward_s - sums.whole_backward_s,
        weight_gradient_s=_apart_s(sums.weight_gradient_s, hardware),
        compute_s=sums.forward_s + sums.backward_s,
        tp_s=sums.tp_s,
        cp_s=sums.cp_s,
        ep_s=sums.ep_s,
        dense_parameters=sums.dense_parameters,
        expert_parameters=sums.expert_parameters,
        frozen_dense_bytes=sums.frozen_dense_bytes,
        frozen_expert_bytes=sums.frozen_expert_bytes,
        reference_dense_bytes=np.zeros(len(sums.forward_s)),
        reference_expert_bytes=np.zeros(len(sums.forward_s)),
        saved_bytes=saved * _fragmentation(hardware),
        transient_bytes=transient * _fragmentation(hardware),
    )


def _add_vocabulary_reduction(sums: OperatorSum, keys: LayerKeys, hardware: Hardware, width: int) -> None:
    """The vocabulary-split embedding (or head) sums hidden-wide rows over tp once, forward or backward."""
    time_s = hardware.groups_collective_s("all_reduce", vocabulary_bytes(keys, width), keys.tp_groups)
    sums.communication_forward_s += time_s
    sums.tp_s += time_s


def _embedding(model: ModelSpec, workload: Workload, keys: LayerKeys, hardware: Hardware) -> EndTable:
    plain = embedding_operators(model)
    operators = _as_trained(plain, workload, hardware)
    sums = operator_sum(operators, keys, hardware)
    if model.vocab_size:
        _add_vocabulary_reduction(sums, keys, hardware, model.hidden_size)
    saved, launches_s = np.zeros(len(keys)), launch_floor_s(operators, keys, hardware)
    if model.encoder is not None and model.encoder.front is None:
        _add_vocabulary_reduction(sums, keys.source, hardware, model.encoder.hidden_size or model.hidden_size)
    if model.encoder is not None or model.denoiser is not None:
        saved = encoder_end_bytes(operators, model, keys)
    if model.towers:
        saved = saved + add_towers(sums, launches_s, model, workload, keys, hardware)
    end = _end(sums, saved, np.zeros(len(keys)), hardware, launches_s)
    return with_reference(end, reference_end(plain, model, workload, keys, hardware))


def _head(
    model: ModelSpec,
    workload: Workload,
    kinds: Sequence[Sequence[Operator]],
    keys: LayerKeys,
    hardware: Hardware,
) -> EndTable:
    operators = _head_operators(model, workload, hardware)
    sums = operator_sum(operators, keys, hardware)
    if model.vocab_size:
        _add_vocabulary_reduction(sums, keys, hardware, model.hidden_size)
    copied = _table_copy_parameters(model, workload, keys)
    sums.dense_parameters += copied[0]
    sums.frozen_dense_bytes += copied[1]
    framework, logits = hardware.physics, _logits(model, workload, keys)
    saved = _head_inputs_bytes(operators, keys, hardware) + framework.kept_logit_bytes * logits
    whole, split = framework.passing_logit_bytes, framework.split_loss_bytes
    transient = (whole if split is None else np.where(keys.tp > 1, split, whole)) * logits
    launches_s = launch_floor_s(operators, keys, hardware)
    if model.mtp is not None:
        saved = saved + _add_mtp(sums, launches_s, model, workload, kinds, keys, hardware=hardware, head_saved=saved)
    end = _end(sums, saved, transient, hardware, launches_s)
    return with_reference(end, reference_end(head_operators(model), model, workload, keys, hardware))


def _head_inputs_bytes(head: Sequence[Operator], keys: LayerKeys, hardware: Hardware) -> Array:
    """What the final norm and the head keep of their inputs: [K]."""
    operators = [op for op in head if op.op_class != "cross_entropy"]
    kept = sum((saved_bytes_of_operator(op, keys) for op in operators), start=np.zeros(len(keys)))
    if not hardware.physics.whole_head_input:
        return kept
    whole = ELEMENT_BYTES * operators[-1].saved_width * keys.tokens
    return kept + np.where(keys.sp > 0, whole - saved_bytes_of_operator(operators[-1], keys), 0.0)


def _table_copy_parameters(model: ModelSpec, workload: Workload, keys: LayerKeys) -> tuple[Array, Array]:
    """The token table on the head's stage: parameters that learn, and bytes where it is frozen: two [K].

    A tied head is one, and multi-token prediction looks tokens up there.

    Source: Megatron-Core 0.19.2, models/gpt/gpt_model.py: ``if self.pre_process or self.mtp_process: self.embedding``.
    """
    width = (model.embedding_size or model.hidden_size) if model.tie_embeddings or model.mtp is not None else 0
    if workload.trained.task == "reward" and model.mtp is None:
        width = 0
    copied, none = width * model.vocab_size / keys.tp, np.zeros(len(keys))
    learns = not workload.trained.adapters or workload.trained.ends
    return (copied, none) if learns else (none, WIDE_BYTES * copied)


def _add_mtp(
    sums: OperatorSum,
    launches_s: tuple[Array, Array],
    model: ModelSpec,
    workload: Workload,
    kinds: Sequence[Sequence[Operator]],
    keys: LayerKeys,
    *,
    hardware: Hardware,
    head_saved: Array,
) -> Array:
    """Multi-token-prediction modules sit beside the head and run the head once more.  Returns kept bytes."""
    mtp = model.mtp
    if mtp is None:
        return np.zeros(len(keys))
    layer_ops, around = kinds[mtp.kind], _as_trained(mtp_operators(model), workload, hardware)
    head = _head_operators(model, workload, hardware)
    sums.add_times(operator_sum(head, keys, hardware), mtp.num_layers)
    add_launches(launches_s, head, keys, hardware, mtp.num_layers)
    for operators in (layer_ops, around):
        one = operator_sum(operators, keys, hardware)
        sums.add_times(one, mtp.num_layers)
        add_launches(launches_s, operators, keys, hardware, mtp.num_layers)
        sums.add_weights(one, mtp.num_layers)
    kept = saved_bytes(layer_ops, keys, Relief(), model.stream_size, hardware.physics)
    kept = kept + working_bytes(around, keys) + head_saved
    return mtp.num_layers * kept
