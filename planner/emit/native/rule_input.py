"""What does a rule of the native trainer look at?  The few facts that exist before a whole plan does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.emit.layout import Layout, chunks_in_model_order, layout_of
from planner.model.spec import LayerSpec, ModelSpec, MoeSpec
from planner.plan import Plan
from planner.problem import Workload
from planner.strategy import Strategy


@dataclass(frozen=True, slots=True)
class RuleInput:
    """A strategy for a model and a workload on one kind of device.

    ``layers_per_chunk`` goes along the model, pp * vpp entries, None while the split is not decided; ``layout`` is
    there only for a whole plan.
    """

    strategy: Strategy
    model: ModelSpec
    workload: Workload
    architecture: str = ""
    layers_per_chunk: tuple[int, ...] | None = None
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class NativeRule:
    """One rule: ``check`` says what is wrong and what would repair it, or None."""

    id: str
    source: str
    check: Callable[[RuleInput], str | None]


def rule_input(plan: Plan) -> RuleInput:
    """The rule's view of a whole plan."""
    layout = layout_of(plan)
    return RuleInput(
        strategy=plan.chosen(),
        model=plan.problem.model,
        workload=plan.problem.workload,
        architecture=plan.problem.cluster.pools[0].device.architecture,
        layers_per_chunk=tuple(chunk.num_layers for chunk in chunks_in_model_order(layout)),
        layout=layout,
    )


def used_kinds(model: ModelSpec) -> tuple[LayerSpec, ...]:
    """Layer kinds that really occur, in order of their index."""
    used = {run.kind for run in model.layer_runs}
    return tuple(kind for index, kind in enumerate(model.layer_kinds) if index in used)


def mixtures(model: ModelSpec) -> tuple[MoeSpec, ...]:
    """The mixtures of experts of the model; empty for a dense one."""
    return tuple(kind.moe for kind in used_kinds(model) if kind.moe is not None)
