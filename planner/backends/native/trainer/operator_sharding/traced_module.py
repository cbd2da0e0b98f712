"""The module that a sharding plan trains, its weights and batches: traced again, and held to the plan's names.

The graph is traced by the planner's own function, so that its node names are those of the plan; its hash tells whether
the module, this torch or the planner has changed since.  Weights are the module's own initialisation under the run's
seed: every rank builds the whole module once and keeps its parts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx, nn

from planner.backends.native.trainer.operator_sharding.settings import RunSettings
from planner.errors import BackEndRefused, DocumentInvalid, NotFound
from planner.shard.read_sharding_plan import HINT, read_sharding_plan
from planner.shard.sharding_plan import ShardingPlan, TracedInput, TracedModule
from planner.shard.torch_graph.module_source import ModuleSource, load_module
from planner.shard.torch_graph.read_graph import operator_graph, traced_step


@dataclass(frozen=True, slots=True)
class Retraced:
    """The module with weights, and the graph of its step: placeholders are parameters, buffers and inputs in order."""

    module: nn.Module
    graph: fx.GraphModule
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    results: tuple[str, ...]
    inputs: tuple[TracedInput, ...]
    dtype: torch.dtype

    @property
    def reference(self) -> str:
        """For messages."""
        return type(self.module).__name__


def load_sharding_plan(path: Path) -> ShardingPlan:
    """Read one sharding plan.  Raises NotFound or DocumentInvalid."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFound(f"no sharding plan {path}", where=str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentInvalid(f"not a sharding plan: {error}", where=str(path), hint=HINT) from error
    return read_sharding_plan(text, str(path))


def retrace(plan: ShardingPlan, seed: int) -> Retraced:
    """Build the module with weights and trace its step again.

    Raises DocumentInvalid when it is not the module that was planned, NotFound when it is not there, BackEndRefused
    when its step draws random numbers.
    """
    step = traced_step(module_source(plan.traced))
    if operator_graph(step, ()).graph_hash != plan.traced.graph_hash:
        raise DocumentInvalid(
            f"{plan.traced.title} is not the module that was planned: its graph has changed",
            where="sharding.json#/traced/graph_hash",
            hint="plan the module again with `meshwright shard`, with the torch that will run it",
        )
    refuse_random(step.graph)
    return Retraced(
        module=built_module(plan.traced, seed),
        graph=step.graph,
        parameters=step.parameters,
        buffers=step.buffers,
        results=step.results,
        inputs=plan.traced.inputs,
        dtype=_dtype(plan.traced.dtype),
    )


def module_source(traced: TracedModule) -> ModuleSource:
    """What the planner traced: the module on the meta device, with the plan's inputs."""
    texts = [f"{each.name}={each.dtype}[{','.join(map(str, each.shape))}]" for each in traced.inputs]
    source = load_module(traced.module, traced.arguments, texts, dtype=traced.dtype)
    inputs = tuple(given.requires_grad_(row.gradient) for given, row in zip(source.inputs, traced.inputs, strict=True))
    return replace(source, inputs=inputs)


def refuse_random(graph: fx.GraphModule) -> None:
    """Raise BackEndRefused where an operator draws random numbers: its parts would not be those of one drawing."""
    for node in graph.graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not _drops_nothing(node):
            raise BackEndRefused(
                f"operator {node.name} ({node.target}) draws random numbers, and shards of them are not defined",
                where=f"operator {node.name}",
                hint="plan the module without dropout, for example with dropout=0 among its arguments",
            )


def _drops_nothing(node: fx.Node) -> bool:
    """Whether the operator is an attention with a dropout of zero, which draws nothing."""
    names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    given = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
    return "dropout_p" in names and not given.get("dropout_p")


def built_module(traced: TracedModule, seed: int) -> nn.Module:
    """The module on the CPU with its own initial weights."""
    torch.manual_seed(seed)
    made: nn.Module = _attribute(traced.module)(**traced.arguments)
    return made.to(_dtype(traced.dtype))


def whole_batch(retraced: Retraced, settings: RunSettings, step: int) -> list[Tensor]:
    """The inputs of the module for one step, whole, the same on every rank.

    They are what ``--data`` returns, else random numbers (integers are 0 or 1, which every vocabulary has).  Raises
    DocumentInvalid for other shapes.
    """
    torch.manual_seed(settings.seed * 1_000_003 + step + 1)
    if settings.data is not None:
        found, where = list(_attribute(settings.data)(step)), "--data"
    else:
        found, where = [_random(each) for each in retraced.inputs], "the plan"
    shapes = [tuple(each.shape) for each in found]
    wanted = [tuple(each.shape) for each in retraced.inputs]
    if shapes != wanted:
        raise DocumentInvalid(f"the inputs have shapes {shapes}, the plan is for {wanted}", where=where)
    return [each.detach().to(_dtype(row.dtype)) for each, row in zip(found, retraced.inputs, strict=True)]


def _random(row: TracedInput) -> Tensor:
    dtype = _dtype(row.dtype)
    return (
        torch.randn(row.shape, dtype=dtype) if dtype.is_floating_point else torch.randint(0, 2, row.shape, dtype=dtype)
    )


def _dtype(name: str) -> torch.dtype:
    found: torch.dtype = getattr(torch, name)
    return found


def _attribute(reference: str) -> Callable[..., Any]:
    """What ``package.module:name`` names.  Raises NotFound."""
    package, _, name = reference.partition(":")
    try:
        found: Any = importlib.import_module(package)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise NotFound(
            f"{reference!r} cannot be imported: {error}",
            where=reference,
            hint="start the ranks where its package can be imported, for example with PYTHONPATH",
        ) from error
    return found  # type: ignore[no-any-return]
