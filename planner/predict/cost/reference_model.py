"""The forward pass of a frozen reference model beside the trained one (DPO, arXiv 2305.18290).

Each micro-batch passes forward through it once, without anything kept.  Shared with the base of adapters it costs time
and one more gather under ZeRO-3; resident, it also holds 16-bit weights, sharded as the policy's; offloaded, its
weights cross the host link for each pass, under which its own compute hides.  Shape letter: K keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from planner.model.operator import Operator
from planner.model.operators import layer_operators
from planner.model.spec import ModelSpec
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.launches import launched_s
from planner.predict.cost.layer import LayerKind, layer_kind
from planner.predict.cost.payload import vocabulary_bytes
from planner.predict.layer_keys import LayerKeys
from planner.predict.trained_operators import reference_operators
from planner.question.problem import Workload
from planner.question.training import Training
from solver.arrays import Array


@dataclass(frozen=True, slots=True)
class ReferencePass:
    """One layer kind or end of the reference model: seconds of its forward pass by cause, and its bytes: [K]."""

    forward_s: Array
    compute_s: Array
    tp_s: Array
    cp_s: Array
    ep_s: Array
    host_s: Array
    dense_bytes: Array
    expert_bytes: Array


def reference_pass(
    operators: Sequence[Operator],
    training: Training,
    keys: LayerKeys,
    hardware: Hardware,
    extra_s: Array | float = 0.0,
) -> ReferencePass:
    """The forward pass through some operators; ``extra_s``: a reduction of the vocabulary's rows over tp."""
    kind: LayerKind = layer_kind(reference_operators(operators, training), keys, hardware)
    sums = kind.sums
    tp_s = sum(kind.reduction_times_s.values(), start=np.zeros(len(keys))) + extra_s
    ep_s = 0.5 * sums.ep_s
    device_s = sums.forward_s + sums.communication_forward_s + extra_s
    waiting_s = launched_s(device_s, kind.host_forward_s, hardware.physics) - device_s
    if training.reference_at == "offloaded":
        crossing_s = (sums.frozen_dense_bytes + sums.frozen_expert_bytes) / hardware.host_link_bytes_per_s
        waiting_s = np.maximum(waiting_s, crossing_s - device_s)
    return ReferencePass(
        forward_s=device_s + waiting_s,
        compute_s=sums.forward_s,
        tp_s=tp_s,
        cp_s=sums.communication_forward_s + extra_s - tp_s - ep_s,
        ep_s=ep_s,
        host_s=waiting_s,
        dense_bytes=sums.frozen_dense_bytes,
        expert_bytes=sums.frozen_expert_bytes,
    )


def reference_layers(model: ModelSpec, workload: Workload, keys: LayerKeys, hardware: Hardware) -> list[ReferencePass]:
    """The forward pass of each layer kind of the reference model; empty where none runs."""
    if not workload.trained.runs_reference:
        return []
    kinds = [layer_operators(model, kind) for kind in range(len(model.layer_kinds))]
    return [reference_pass(operators, workload.trained, keys, hardware) for operators in kinds]


def reference_end(
    operators: Sequence[Operator], model: ModelSpec, workload: Workload, keys: LayerKeys, hardware: Hardware
) -> list[ReferencePass]:
    """The same of one end of the model."""
    if not workload.trained.runs_reference:
        return []
    reduced_s = hardware.groups_collective_s("all_reduce", vocabulary_bytes(keys, model.hidden_size), keys.tp_groups)
    return [reference_pass(operators, workload.trained, keys, hardware, reduced_s)]


Table = TypeVar("Table", bound=Any)


def with_reference(table: Table, passes: Sequence[ReferencePass]) -> Table:
    """The costs of layers ([K, N]) or of an end ([K]) with the reference's forward pass in the forward pass."""
    if not passes:
        return table

    def of(name: str) -> Array:
        columns = [getattr(each, name) for each in passes]
        return np.stack(columns, axis=1) if table.forward_s.ndim == 2 else columns[0]

    names = ("forward_s", "compute_s", "tp_s", "cp_s", "ep_s", "host_s")
    added = {name: getattr(table, name) + of(name) for name in names}
    if hasattr(table, "forward_compute_s"):
        added["forward_compute_s"] = table.forward_compute_s + of("compute_s")
    added |= {"reference_dense_bytes": of("dense_bytes"), "reference_expert_bytes": of("expert_bytes")}
    return replace(table, **added)
