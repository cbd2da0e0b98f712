"""How is a plan emitted for a target that cannot express all of it?  Honestly: with numbers of its own.

1. The target expresses the plan: its files are the plan.
2. The target's projection of the plan is legal and fits: it is estimated again inside the target's rules.
3. Otherwise the problem is planned again inside the target's rules: the best plan that it can run.

What was given up and what that costs is part of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.diff import DERIVED_FIELDS, strategy_changes, value_words
from planner.emit.assemble import PLAN_MARKDOWN
from planner.emit.catalogue import TARGETS, target_module
from planner.emit.describe import plan_markdown
from planner.emit.emission import Emission, LauncherName, Projection, TargetName
from planner.errors import DocumentInvalid, NoFeasiblePlan, NotFound, TargetRefused
from planner.plan import Plan
from planner.problem import Problem


@dataclass(frozen=True, slots=True)
class TargetEmission:
    """An emission whose plan has numbers of its own, and how much the target's limits cost."""

    emission: Emission
    slower_by: float
    """Step time of the emitted plan over the wanted one, minus one; 0 when nothing was given up."""


def emit_for_target(plan: Plan, target: str, launcher: LauncherName) -> TargetEmission:
    """Emit ``plan`` for ``target``, or the nearest that it can run.

    Raises NotFound for an unknown target, TargetRefused when the target can run no plan of the problem at all.
    """
    name = _target_name(target)
    module = target_module(name)
    projected, projections = module.project(plan)
    if not projections:
        return TargetEmission(module.emit(plan, launcher), 0.0)
    problem = inside_target(plan.problem, name)
    costed = _cost_again(problem, projected)
    if costed is None:
        costed = _plan_again(problem, name)
        projections = _differences(plan, costed, name)
    emission = module.emit(costed, launcher)
    emission = replace(emission, projections=(*projections, *emission.projections))
    files = {**emission.files, PLAN_MARKDOWN: plan_markdown(emission)}
    slower_by = emission.plan.step_time_s / plan.step_time_s - 1
    return TargetEmission(replace(emission, files=files), slower_by)


def inside_target(problem: Problem, target: TargetName) -> Problem:
    """The same question, with the answer limited to what ``target`` can run."""
    constraints = problem.constraints.model_copy(update={"target": target})
    return problem.model_copy(update={"constraints": constraints})


def _target_name(target: str) -> TargetName:
    for known in TARGETS:
        if known == target:
            return known
    raise NotFound(f"no emitter is called {target!r}", where="--target", hint=f"one of {', '.join(TARGETS)}")


def _cost_again(problem: Problem, projected: Plan) -> Plan | None:
    """The projected strategy with its layers dealt anew inside the target's rules; None when it cannot run."""
    from planner.search.estimate import estimate

    try:
        costed = estimate(problem, projected.chosen())
    except DocumentInvalid:
        return None
    return None if costed.status == "infeasible" else costed


def _plan_again(problem: Problem, target: TargetName) -> Plan:
    """The best plan that the target can run."""
    from planner.search.find import find_plan

    try:
        return find_plan(problem)
    except NoFeasiblePlan as error:
        raise TargetRefused(
            f"{target} can run no plan of this problem: {error.what}", where=f"--target {target}", hint=error.hint
        ) from error


def _differences(plan: Plan, other: Plan, target: TargetName) -> tuple[Projection, ...]:
    """The fields in which the target's own best plan differs."""
    reason = f"the nearest plan that {target} can express does not fit; this is the best one that it can run"
    return tuple(
        Projection(change.field, value_words(change.a), value_words(change.b), reason)
        for change in strategy_changes(plan.strategy, other.strategy)
        if change.field not in DERIVED_FIELDS
    )
