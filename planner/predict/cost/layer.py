"""The cost of one transformer layer on one device, for one micro-batch, under one sharding.

Tokens of a device: ``T = micro_batch_size * sequence_length / cp``; under sequence parallelism the norms and the
expert routing see ``T / tp`` of them.  Communication of a layer (Korthikanti et al., arXiv 2205.05198, section 4.2):
each row-parallel matmul ends in one reduction over tp (all_reduce, or reduce_scatter + all_gather under sp), forward
and backward; experts add two all_to_all over ep each way; context parallelism passes keys and values around.

Shape letter: K keys (``planner.predict.layer_keys``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from planner.model.operator import SCANS, Operator
from planner.predict.cost.expert_exchange import dispatch_share
from planner.predict.cost.expert_overlap import Windows
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.launches import host_s, launched_s
from planner.predict.cost.operator_time import attention_backward_ratio, operator_backward_s, operator_forward_s
from planner.predict.cost.overlap import SLOWDOWN, exposed_s
from planner.predict.cost.payload import (
    RING_BACKWARD,
    column_reductions,
    dispatched_fraction,
    ends_experts,
    exchanged_bytes,
    gathered_bytes,
    gathered_token_bytes,
    key_value_bytes,
    reduced_bytes,
    routed_bytes,
    runs_again,
    scanned_bytes,
)
from planner.predict.distinct_parts import routing_of
from planner.predict.layer_keys import LayerKeys, PackedKeys, rows_of
from planner.predict.memory.activations import replayed_shares, saved_bytes, saved_bytes_of_operator
from planner.predict.memory.backward import local_parameters
from planner.strategy.strategy import Relief
from solver.arrays import Array

TP_OVERLAP_FRACTION = 0.75
"""Part of the matmul next to a tp collective under which its chunks can hide (pipelined GEMM + collective)."""
TP_EXPOSED_FRACTION = 0.25
"""Part of an overlapped tp collective that stays visible: the first of four chunks has nothing to hide under."""


@dataclass(slots=True)
class OperatorSum:
    """Running sums over the operators of one layer kind (or of one end of the model), each float64[K]."""

    forward_s: Array
    input_gradient_s: Array
    weight_gradient_s: Array
    communication_forward_s: Array
    communication_backward_s: Array
    tp_s: Array
    cp_s: Array
    ep_s: Array
    dense_parameters: Array
    expert_parameters: Array
    frozen_dense_bytes: Array
    frozen_expert_bytes: Array
    """Bytes of weights that do not learn, before any sharding over data-parallel ranks."""

    @classmethod
    def zeros(cls, count: int) -> OperatorSum:
        """All sums zero for ``count`` keys."""
        return cls(*(np.zeros(count) for _ in fields(cls)))

    def add_weights(self, other: OperatorSum, count: float) -> None:
        """Add ``count`` times the parameters and frozen bytes of ``other``."""
        for name in ("dense_parameters", "expert_parameters", "frozen_dense_bytes", "frozen_expert_bytes"):
            getattr(self, name)[:] += count * getattr(other, name)

    def add_times(self, other: OperatorSum, count: float) -> None:
        """Add ``count`` times the seconds of ``other``; parameters stay."""
        for field in fields(self):
            if field.name.endswith("_s"):
                getattr(self, field.name)[:] += count * getattr(other, field.name)

    @property
    def backward_s(self) -> Array:
        """Compute of the backward pass."""
        return self.input_gradient_s + self.weight_gradient_s

    @property
    def whole_forward_s(self) -> Array:
        """Forward, compute and exposed communication."""
        return self.forward_s + self.communication_forward_s

    @property
    def whole_backward_s(self) -> Array:
        """Backward, compute and exposed communication."""
        return self.backward_s + self.communication_backward_s

    @property
    def total_s(self) -> Array:
        """Forward and backward, compute and exposed communication."""
        return self.forward_s + self.backward_s + self.communication_forward_s + self.communication_backward_s


@dataclass(frozen=True, slots=True)
class LayerKind:
    """One layer kind costed for all keys: its operators, their forward seconds by name, and their sums.

    ``reduction_times_s``: forward seconds of the tp communication of each row-parallel matmul, by its name.
    """

    operators: tuple[Operator, ...]
    forward_times_s: dict[str, Array]
    reduction_times_s: dict[str, Array]
    sums: OperatorSum
    host_forward_s: Array
    host_backward_s: Array
    forward_s: Array
    """Forward with exposed communication, and with what its launches add: [K]."""
    backward_s: Array
    """Backward with exposed communication, and with what its launches add: [K]."""

    @property
    def stall_s(self) -> Array:
        """Seconds that the device waits for the host, forward and backward; exactly zero where it never does: [K]."""
        return self.forward_s - self.sums.whole_forward_s + self.backward_s - self.sums.whole_backward_s


def layer_kind(operators: Sequence[Operator], keys: LayerKeys, hardware: Hardware) -> LayerKind:
    """Cost the operators of one layer kind."""
    times_s = {operator.name: operator_forward_s(operator, rows_of(operator, keys), hardware) for operator in operators}
    sums, reductions_s = _sum(operators, times_s, keys, hardware)
    launches_s = launch_floor_s(operators, keys, hardware)
    passes_s = passes_with_launches_s(sums, launches_s, hardware)
    return LayerKind(tuple(operators), times_s, reductions_s, sums, *launches_s, *passes_s)


def passes_with_launches_s(
    sums: OperatorSum, launches_s: tuple[Array, Array], hardware: Hardware
) -> tuple[Array, Array]:
    """Seconds of the forward and the backward pass that these host seconds launch: two [K]."""
    return (
        launched_s(sums.whole_forward_s, launches_s[0], hardware.physics),
        launched_s(sums.whole_backward_s, launches_s[1], hardware.physics),
    )


def launch_floor_s(operators: Sequence[Operator], keys: LayerKeys, hardware: Hardware) -> tuple[Array, Array]:
    """Seconds that the host needs for these operators, forward and backward: two [K]."""
    meets_s, casts = meeting_s(keys, hardware), hardware.rates.casts
    return host_s(operators, keys, hardware.physics, meeting_s=meets_s, casts=casts)


def add_launches(
    launches_s: tuple[Array, Array], operators: Sequence[Operator], keys: LayerKeys, hardware: Hardware, count: int
) -> None:
    """Add ``count`` times the host seconds of these operators, forward and backward."""
    forward_s, backward_s = launch_floor_s(operators, keys, hardware)
    launches_s[0][:] += count * forward_s
    launches_s[1][:] += count * backward_s


def meeting_s(keys: LayerKeys, hardware: Hardware) -> Array | None:
    """Host seconds of one tensor-parallel collective before which its ranks meet: [K]; None where they do not.

    The next meeting waits until the smallest collective would have ended.
    """
    if hardware.meeting_s == 0.0:
        return None
    smallest_s = hardware.groups_collective_s("all_gather", np.ones(len(keys)), keys.tp_groups)
    return hardware.meeting_s * np.where(keys.tp > 1, keys.tp, 0.0) + smallest_s


def operator_sum(operators: Sequence[Operator], keys: LayerKeys, hardware: Hardware) -> OperatorSum:
    """Add up the operators of a layer for all keys."""
    return layer_kind(operators, keys, hardware).sums


def _sum(
    operators: Sequence[Operator], times_s: Mapping[str, Array], keys: LayerKeys, hardware: Hardware
) -> tuple[OperatorSum, dict[str, Array]]:
    sums = OperatorSum.zeros(len(keys))
    reductions_s: dict[str, Array] = {}
    columns_s, times = np.zeros(len(keys)), _column_reductions(operators, hardware)
    windows = Windows(len(keys))
    for operator in operators:
        forward_s = times_s[operator.name]
        sums.forward_s += forward_s
        input_gradient_s, weight_gradient_s = operator_backward_s(
            operator, rows_of(operator, keys), hardware, forward_s
        )
        sums.input_gradient_s += input_gradient_s
        sums.weight_gradient_s += weight_gradient_s
        windows.add(operator, forward_s, input_gradient_s, weight_gradient_s)
        _add_parameters(sums, operator, keys)
        if operator.shard == "column":
            columns_s = columns_s + forward_s
        if operator.shard == "row":
            columns = columns_s, times.get(operator.name, 1.0)
            reductions_s[operator.name] = _add_tp(sums, operator, keys, hardware, (forward_s, *columns))
            columns_s = np.zeros(len(keys))
        elif operator.op_class == "attention" and not operator.of_source:
            _add_cp(sums, operator, keys, hardware, forward_s)
        elif operator.op_class in SCANS:
            _add_scan_cp(sums, operator, keys, hardware)
        elif ends_experts(operator):
            _add_ep(sums, operator, keys, hardware)
    local = sums.dense_parameters + sums.expert_parameters
    sums.weight_gradient_s += accumulation_s(local, hardware)
    taken = np.where(keys.once, dispatch_share(hardware.pool.device.architecture), SLOWDOWN)
    overlapped = windows.exposed_s(sums.ep_s, np.maximum(taken, SLOWDOWN))
    ep_s = np.where(keys.overlap_ep > 0, overlapped, sums.ep_s)
    sums.communication_forward_s += 0.5 * ep_s
    sums.communication_backward_s += 0.5 * ep_s
    sums.ep_s = ep_s
    return sums, reductions_s


def accumulation_s(parameters: Array, hardware: Hardware) -> Array:
    """Seconds to add gradients of ``parameters`` local parameters to their accumulators, once a micro-batch: [K]."""
    moved_bytes = hardware.physics.accumulation_bytes * parameters
    return moved_bytes / hardware.rates.memory_bytes_per_s * hardware.factors.compute


def saved_and_extra(
    kind: LayerKind, keys: LayerKeys, hardware: Hardware, relief: Relief, hidden_size: int
) -> tuple[Array, Array]:
    """Bytes that a layer keeps under a relief, and the seconds a micro-batch that the relief adds: two [K].

    Recompute runs operators again with their communication (the reduction of a replayed row-parallel matmul, the
    exchange of a replayed mixture, everything of a replayed layer); offload moves what is kept to the host during the
    forward pass and back during the backward pass.
    """
    kept = saved_bytes(kind.operators, keys, relief, hidden_size, hardware.physics)
    if relief.offload:
        moved_bytes = saved_bytes(kind.operators, keys, Relief(), hidden_size, hardware.physics)
        one_way_s = moved_bytes / hardware.host_link_bytes_per_s
        return kept, exposed_s(one_way_s, kind.sums.forward_s) + exposed_s(one_way_s, kind.sums.backward_s)
    extra_s = np.zeros(len(keys))
    shares = replayed_shares(kind.operators, relief, hardware.physics)
    replayed = frozenset(shares)
    for name, share in shares.items():
        extra_s = extra_s + share * kind.forward_times_s[name]
    if relief.recompute == "full":
        return kept, _behind_host_s(kind, keys, hardware, replayed, extra_s + kind.sums.communication_forward_s)
    for name, reduction_s in kind.reduction_times_s.items():
        if runs_again("tp", name, relief, replayed):
            extra_s = extra_s + reduction_s
    if runs_again("ep", "", relief, replayed):
        extra_s = extra_s + 0.5 * kind.sums.ep_s
    return kept, _behind_host_s(kind, keys, hardware, replayed, extra_s)


def _behind_host_s(
    kind: LayerKind, keys: LayerKeys, hardware: Hardware, replayed: frozenset[str], extra_s: Array
) -> Array:
    """What a replay of ``extra_s`` device seconds adds to a backward pass whose launches may be the longer part."""
    meets_s, casts = meeting_s(keys, hardware), hardware.rates.casts
    launches_s, _ = host_s(kind.operators, keys, hardware.physics, replayed, meets_s, casts=casts)
    device_s = kind.sums.whole_backward_s + extra_s
    return launched_s(device_s, kind.host_backward_s + launches_s, hardware.physics) - kind.backward_s


def attention_seconds_of(kind: LayerKind, keys: LayerKeys, hardware: Hardware) -> tuple[Array, Array]:
    """Forward and backward seconds of attention alone; zero where no documents are packed: two [K]."""
    forward_s = backward_s = np.zeros(len(keys))
    for operator in kind.operators:
        if operator.op_class == "attention" and isinstance(keys, PackedKeys):
            here_s = kind.forward_times_s[operator.name]
            forward_s = forward_s + here_s
            backward_s = backward_s + attention_backward_ratio(operator, keys, hardware) * here_s
    return forward_s, backward_s


def working_bytes(operators: Sequence[Operator], keys: LayerKeys) -> Array:
    """Tensors alive while one layer runs forward or is replayed: what it would keep without recompute: [K]."""
    return sum((saved_bytes_of_operator(op, keys) for op in operators), start=np.zeros(len(keys)))


def _add_parameters(sums: OperatorSum, operator: Operator, keys: LayerKeys) -> None:
    routed, parameters = operator.shard.startswith("expert"), local_parameters(operator, keys)
    if operator.frozen:
        held_bytes = sums.frozen_expert_bytes if routed else sums.frozen_dense_bytes
        held_bytes += operator.stored_bytes * parameters
        return
    held = sums.expert_parameters if routed else sums.dense_parameters
    held += parameters


def _column_reductions(operators: Sequence[Operator], hardware: Hardware) -> dict[str, float]:
    return column_reductions(operators) if hardware.physics.reduces_each_column else {}


def _add_tp(
    sums: OperatorSum,
    operator: Operator,
    keys: LayerKeys,
    hardware: Hardware,
    neighbours: tuple[Array, Array, float],
) -> Array:
    """One reduction forward, one backward, over the output of a row-parallel matmul; returns the forward seconds.

    ``neighbours``: forward seconds of that matmul and of the column-parallel ones before it, and how many reductions of
    input gradients these have.
    """
    matmul_s, columns_s, reductions = neighbours
    size = reduced_bytes(operator, keys)
    reduce_s = hardware.groups_collective_s("all_reduce", size, keys.tp_groups)
    scatter_s = hardware.groups_collective_s("reduce_scatter", size, keys.tp_groups)
    gather_s = scatter_s
    if hardware.rates.casts:
        gather_s = hardware.groups_collective_s(
            "all_gather", gathered_bytes(size, narrow=hardware.rates.narrow_bytes), keys.tp_groups
        )
    elif hardware.measured_links is not None:
        gather_s = hardware.groups_collective_s("all_gather", size, keys.tp_groups)
    late_s = hardware.physics.collective_skew_s * np.sqrt(2.0 * np.log(keys.tp))
    # Under sp the all_reduce becomes reduce_scatter + all_gather, and the backward gathers the saved input once more
    # beside the input-gradient matmul.
    one_way_s = np.where(keys.sp > 0, scatter_s + gather_s, reduce_s) + late_s
    regather_s = np.where(keys.sp > 0, exposed_s(gather_s, matmul_s), 0.0)
    hidden_s = exposed_s(one_way_s, TP_OVERLAP_FRACTION * 2.0 * matmul_s, TP_EXPOSED_FRACTION)
    shown_s = np.where(keys.overlap_tp > 0, hidden_s, one_way_s)
    back_s = reductions * shown_s
    if not hardware.physics.overlaps_tp_forward:
        # A weight gradient takes about as long as the forward pass of its matmul.
        shown_s, back_s = one_way_s, reductions * one_way_s
        back_s = np.where(keys.overlap_tp > 0, exposed_s(back_s, columns_s), back_s)
    sums.communication_forward_s += shown_s
    sums.communication_backward_s += back_s + regather_s
    sums.tp_s += shown_s + back_s + regather_s
    return shown_s


def _add_cp(sums: OperatorSum, operator: Operator, keys: LayerKeys, hardware: Hardware, attention_s: Array) -> None:
    """Ring: keys and values travel cp-1 hops beside the attention.  All-to-all: q, k, v in, output out."""
    ring_s = hardware.groups_collective_s("all_gather", key_value_bytes(operator, keys) * keys.cp, keys.cp_groups)
    forward_ring_s = exposed_s(ring_s, attention_s, tail_fraction=1.0 / np.maximum(keys.cp, 2.0))
    backward_ring_s = exposed_s(
        RING_BACKWARD * ring_s,
        attention_backward_ratio(operator, keys, hardware) * attention_s,
        tail_fraction=1.0 / np.maximum(keys.cp, 2.0),
    )
    exchange_s = sum(
        (hardware.collective_s("all_to_all", size, keys.cp, keys.tp) for size in exchanged_bytes(operator, keys)),
        start=np.zeros(len(keys)),
    )
    forward_s = np.where(keys.ring > 0, forward_ring_s, exchange_s)
    backward_s = np.where(keys.ring > 0, backward_ring_s, exchange_s)
    sums.communication_forward_s += forward_s
    sums.communication_backward_s += backward_s
    sums.cp_s += forward_s + backward_s


def _add_scan_cp(sums: OperatorSum, operator: Operator, keys: LayerKeys, hardware: Hardware) -> None:
    """A scan's inputs traded for heads of whole sequences, its output traded back; the same in the backward pass."""
    exchange_s = sum(
        (hardware.collective_s("all_to_all", size, keys.cp, keys.tp) for size in scanned_bytes(operator, keys)),
        start=np.zeros(len(keys)),
    )
    sums.communication_forward_s += exchange_s
    sums.communication_backward_s += exchange_s
    sums.cp_s += 2.0 * exchange_s


def _add_ep(sums: OperatorSum, operator: Operator, keys: LayerKeys, hardware: Hardware) -> None:
    """Dispatch and combine, forward and backward, over ep; gather and reduce over etp."""
    size, routing = routed_bytes(operator, keys), routing_of(operator, keys.routing)
    carried = dispatched_fraction(narrow=hardware.physics.narrow_dispatch, eight_bit=hardware.rates.casts)
    combine_s = dispatch_s = hardware.expert_exchange_s(size, keys.ep, keys.etp, routing, keys.once)
    if carried != 1.0:
        dispatch_s = hardware.expert_exchange_s(carried * size, keys.ep, keys.etp, routing, keys.once)
    gathered = size * keys.etp * keys.hottest(operator.num_experts)
    gather_s = hardware.groups_collective_s("all_gather", gathered, keys.etp_groups)
    exchange_s = 2.0 * (dispatch_s + combine_s) + 4.0 * gather_s
    if keys.gathered.any():
        exchange_s = np.where(keys.gathered, _gathered_s(operator, keys, hardware), exchange_s)
    sums.ep_s += exchange_s


def _gathered_s(operator: Operator, keys: LayerKeys, hardware: Hardware) -> Array:
    """Gathering all ranks' tokens, scattering the sums of their experts' outputs, and both backward: [K]."""
    sent, ranks, neighbours = gathered_token_bytes(operator, keys), keys.ep * keys.etp, np.ones(len(keys))
    return sum(
        (
            hardware.collective_s(operation, size, ranks, neighbours)
            for operation in ("all_gather", "reduce_scatter")
            for size in sent
        ),
        start=np.zeros(len(keys)),
    )
