"""Whether a plan can be said module by module: the axis of the data, that of the weights, each layer's split.

An axis is a *data axis* when all inputs are read by samples on it and every weight is whole where it is read:
replicas, or FSDP where weights or their optimizer states are cut.  It is a *tensor axis* when all inputs are read whole
on it and the weights of linear layers are cut by their output (column-parallel) or input features (row-parallel), all
else whole.  Anything else has no name at this level, and only the graph runner runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from planner.shard.sharding_plan import OperatorPlacement, ParameterPlacement, ShardingPlan, TensorEdge

Style = Literal["ColwiseParallel", "RowwiseParallel"]
DataKind = Literal["fully_shard", "shard_states", "replicate"]
_DATA_AXES: tuple[tuple[DataKind, ...], ...] = (
    (),
    ("replicate",),
    ("fully_shard",),
    ("shard_states",),
    ("replicate", "fully_shard"),
    ("replicate", "shard_states"),
)
_PASSED_ON = (
    "aten.alias.default",
    "aten.t.default",
    "aten.view.default",
    "aten.transpose.int",
    "aten._to_copy.default",
)
_PRODUCTS = ("aten.einsum.default", "aten.mm.default", "aten.addmm.default")


@dataclass(frozen=True, slots=True)
class ModuleForm:
    """What ``parallelize_module`` and ``fully_shard`` are told."""

    tensor_styles: dict[str, dict[str, Style]]
    """Tensor axis -> module path -> style."""
    data_axes: dict[str, DataKind]


class NotPerModule(Exception):
    """Why the plan cannot be said module by module."""


def module_form(plan: ShardingPlan) -> ModuleForm:
    """Raises NotPerModule with the first reason."""
    styles: dict[str, dict[str, Style]] = {}
    data: dict[str, DataKind] = {}
    for axis, mesh_axis in enumerate(plan.mesh):
        words = {edge.needed[axis] for node in _input_nodes(plan) for _, edge in forward_readers(plan, node)}
        if words == {"shard:0"}:
            data[mesh_axis.name] = _data_kind(plan, axis)
        elif words == {"replicate"}:
            styles[mesh_axis.name] = dict(_styles(plan, axis))
        else:
            raise NotPerModule(f"the inputs are read as {', '.join(sorted(words))} on axis {mesh_axis.name}")
    if tuple(data.values()) not in _DATA_AXES:
        raise NotPerModule(f"FSDP has no name for data axes of {', '.join(data.values())}, in this order")
    return ModuleForm(styles, data)


def _input_nodes(plan: ShardingPlan) -> list[str]:
    """Placeholders of the inputs: what operators read that is neither theirs nor a parameter's."""
    made = {row.name for row in plan.operators} | {row.name for row in plan.parameters}
    read = [edge.producer for row in plan.operators for edge in row.inputs]
    return [name for name in dict.fromkeys(read) if name not in made and name.startswith("inputs")]


def _trained(plan: ShardingPlan) -> list[ParameterPlacement]:
    return [row for row in plan.parameters if row.kind == "parameter"]


def _data_kind(plan: ShardingPlan, axis: int) -> DataKind:
    name = plan.mesh[axis].name
    for row in _trained(plan):
        if any(edge.needed[axis] != "replicate" for _, edge in forward_readers(plan, row.name)):
            raise NotPerModule(f"{row.parameter} is read in parts on the data axis {name}")
    kept = {row.placements[axis] for row in _trained(plan)}
    states = {row.state_placements[axis] for row in _trained(plan)}
    if kept == {"shard:0"}:
        return "fully_shard"
    if kept == {"replicate"} and states in ({"shard:0"}, {"replicate"}):
        return "shard_states" if states == {"shard:0"} else "replicate"
    raise NotPerModule(f"weights are placed as {', '.join(sorted(kept | states))} on the data axis {name}")


def _styles(plan: ShardingPlan, axis: int) -> Iterator[tuple[str, Style]]:
    name = plan.mesh[axis].name
    rows = {row.parameter: row for row in _trained(plan)}
    for row in rows.values():
        module, _, kind = row.parameter.rpartition(".")
        word = row.placements[axis]
        if row.state_placements[axis] != word:
            raise NotPerModule(f"{row.parameter} and its optimizer state differ on the tensor axis {name}")
        weight = rows.get(f"{module}.weight")
        # A bias is judged with the weight that it belongs to.
        if word == "replicate" or (kind == "bias" and weight and weight.placements[axis] != "replicate"):
            continue
        bias = rows.get(f"{module}.bias")
        bias_word = bias.placements[axis] if bias else None
        readers = forward_readers(plan, row.name)
        if len(row.shape) != 2 or kind != "weight" or {reader.target for reader, _ in readers} - set(_PRODUCTS):
            raise NotPerModule(f"{row.parameter} is cut on the tensor axis {name} and is no linear layer's weight")
        if word == "shard:0" and bias_word in (None, "shard:0"):
            yield module, "ColwiseParallel"
        elif word == "shard:1" and bias_word in (None, "replicate"):
            yield module, "RowwiseParallel"
        else:
            raise NotPerModule(f"weight and bias of {module} are cut differently on the tensor axis {name}")


def forward_readers(plan: ShardingPlan, producer: str) -> list[tuple[OperatorPlacement, TensorEdge]]:
    """Forward operators that compute with a weight or an input, through views and relays of it."""
    found: list[tuple[OperatorPlacement, TensorEdge]] = []
    for operator in plan.operators:
        for edge in operator.inputs:
            if edge.producer != producer or operator.phase != "forward":
                continue
            if operator.target in _PASSED_ON:
                found += forward_readers(plan, operator.name)
            else:
                found.append((operator, edge))
    return found
