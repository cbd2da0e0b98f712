"""What does a DeepSpeed rule look at?  The few facts that exist before a whole plan does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.emit.layout import Layout, layout_of
from planner.model.spec import LayerSpec, ModelSpec, MoeSpec
from planner.plan import Plan
from planner.problem import Workload
from planner.strategy import Strategy

DEEPSPEED_VERSION = "0.19.8"


@dataclass(frozen=True, slots=True)
class RuleInput:
    """A strategy for a model and a workload.

    ``layout`` is None while stages are not decided; rules about single stages are then silent.
    """

    strategy: Strategy
    model: ModelSpec
    workload: Workload
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class DeepSpeedRule:
    """One rule: ``check`` says what is wrong and what would repair it, or None."""

    id: str
    source: str
    check: Callable[[RuleInput], str | None]


def rule_input(plan: Plan) -> RuleInput:
    """The rule's view of a whole plan."""
    return RuleInput(plan.chosen(), plan.problem.model, plan.problem.workload, layout_of(plan))


def used_kinds(model: ModelSpec) -> tuple[LayerSpec, ...]:
    """Layer kinds that really occur in the model's layers, in order of their index."""
    used = {run.kind for run in model.layer_runs}
    return tuple(kind for index, kind in enumerate(model.layer_kinds) if index in used)


def mixtures(model: ModelSpec) -> tuple[MoeSpec, ...]:
    """Every distinct mixture of experts of the model; empty for a dense one."""
    return tuple(dict.fromkeys(kind.moe for kind in used_kinds(model) if kind.moe is not None))
