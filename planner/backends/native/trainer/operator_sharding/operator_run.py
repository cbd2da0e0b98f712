"""Runs one operator of a traced step at the placements of the plan.

1. Every input tensor is brought to the placements that the plan gives this operator: the only communication there is.
2. The operator runs through DTensor, whose own sharding rule must need no further redistribution.
3. The placements that the rule gives must be the plan's.

Operators that make a tensor from no tensor (constants, ranges) run whole on every rank and are cut.  Operators that
the plan keeps replicated on every axis run whole without any rule; those of ``local_rules`` run on the shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import ExplicitRedistributionContext
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from planner.backends.native.trainer.operator_sharding.local_rules import LOCAL_RULES, local_outputs
from planner.backends.native.trainer.operator_sharding.placements import (
    as_placed,
    from_whole,
    placed,
    with_mask_applied,
    with_plain_strides,
    words_of,
)
from planner.errors import BackEndRefused
from planner.shard.sharding_plan import OperatorPlacement, Placements

VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)
_RULE_ERRORS = (RuntimeError, NotImplementedError, TypeError, ValueError, AssertionError, IndexError)
"""What DTensor raises where a rule does not apply."""


class Arguments(NamedTuple):
    """Of one call, tensors at their placements."""

    positional: tuple[Any, ...]
    keywords: dict[str, Any]
    num_tensors: int


def run_operator(node: fx.Node, plan: OperatorPlacement, values: Mapping[fx.Node, Any], mesh: DeviceMesh) -> Any:
    """The operator's results as DTensors; what is no tensor stays as it is.

    Raises BackEndRefused, with the operator's name, where it cannot run at the placements of the plan.
    """
    arguments = _arguments(node, plan, values, mesh)
    needed = [edge.needed for edge in plan.inputs]
    outputs = [words for words in plan.outputs if words is not None]
    try:
        if not arguments.num_tensors:
            result = _made_whole(node, outputs, arguments, mesh)
        elif all(word == "replicate" for words in (*needed, *outputs) for word in words):
            result = _on_local(node, arguments, plan.outputs, mesh)
        elif (found := local_outputs(node.target, node.args, needed)) is not None:
            result = _on_local(node, arguments, found, mesh)
        else:
            with ExplicitRedistributionContext(strict=True):
                result = node.target(*arguments.positional, **arguments.keywords)  # type: ignore[operator]
    except _RULE_ERRORS as error:
        raise refused(node, plan, _first_line(error)) from error
    return _checked(node, plan, result)


def _arguments(node: fx.Node, plan: OperatorPlacement, values: Mapping[fx.Node, Any], mesh: DeviceMesh) -> Arguments:
    """Arguments at their placements, and how many of them are tensors."""
    count = 0

    def moved(argument: fx.Node) -> Any:
        nonlocal count
        value = values[argument]
        if not isinstance(value, DTensor):
            return value
        count += 1
        return _moved(node, plan, count - 1, value) if count <= len(plan.inputs) else value

    positional, keywords = fx.map_arg((node.args, node.kwargs), moved)
    if count != len(plan.inputs):
        raise refused(node, plan, f"the plan places {len(plan.inputs)} input tensors, and it has {count}")
    if "device" in keywords:
        keywords = {**keywords, "device": torch.device(mesh.device_type)}
    return Arguments(positional, dict(keywords), count)


def _moved(node: fx.Node, plan: OperatorPlacement, index: int, value: DTensor) -> DTensor:
    needed = plan.inputs[index].needed
    try:
        there = placed(value, needed)
        return with_plain_strides(there) if node.target in VIEWS else there
    except _RULE_ERRORS as error:
        way = f"{_said([words_of(value)])} -> {_said([needed])}"
        raise refused(node, plan, f"input {index} cannot go {way}: {_first_line(error)}") from error


def _made_whole(node: fx.Node, outputs: Sequence[Placements], arguments: Arguments, mesh: DeviceMesh) -> Any:
    made = node.target(*arguments.positional, **arguments.keywords)  # type: ignore[operator]
    return from_whole(made, mesh, outputs[0]) if isinstance(made, Tensor) else made


def _on_local(node: fx.Node, arguments: Arguments, outputs: Sequence[Placements | None], mesh: DeviceMesh) -> Any:
    """The plain operator on what this rank holds, its results declared to be parts of the traced tensors."""
    positional, keywords = tree_map(
        lambda value: value.to_local() if isinstance(value, DTensor) else value,
        (arguments.positional, arguments.keywords),
    )
    if node.target in LOCAL_RULES:
        positional = LOCAL_RULES[node.target].adjusted(positional)
    result = node.target(*positional, **keywords)  # type: ignore[operator]
    flat, layout = tree_flatten(result)
    wholes, _ = tree_flatten(node.meta["val"])
    wrapped = [
        as_placed(value, mesh, words or (), whole) if isinstance(value, Tensor) else value
        for value, words, whole in zip(flat, outputs, wholes, strict=False)
    ]
    return tree_unflatten(wrapped, layout)


def _checked(node: fx.Node, plan: OperatorPlacement, result: Any) -> Any:
    """The result at the plan's placements, or refused."""
    several = isinstance(result, tuple | list)
    given = [
        with_mask_applied(each) if isinstance(each, DTensor) else each for each in (result if several else [result])
    ]
    found = [words_of(each) for each in given if isinstance(each, DTensor)]
    # A rule may place results that nobody asked for; the plan has None there, and so has the result.
    wanted = [
        tuple(words) for each, words in zip(given, plan.outputs, strict=False) if isinstance(each, DTensor) and words
    ]
    if found != wanted:
        raise refused(node, plan, f"DTensor's rule gives {_said(found)}, the plan says {_said(wanted)}")
    return tuple(given) if several else given[0]


def refused(node: fx.Node, plan: OperatorPlacement | None, reason: str) -> BackEndRefused:
    """The one error of this folder: which operator, of which module, at which placements, and why not."""
    place = f" of module {plan.module_path}" if plan and plan.module_path else ""
    inputs = f" with inputs {_said([edge.needed for edge in plan.inputs])}" if plan else ""
    return BackEndRefused(
        f"operator {node.name} ({node.target}){place} cannot run{inputs}: {reason}",
        where=f"operator {node.name}",
        hint="plan the module again with this version of torch and of Meshwright",
    )


def _said(tensors: Sequence[Sequence[str]]) -> str:
    return ", ".join("(" + ", ".join(words) + ")" for words in tensors) or "no tensor"


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
