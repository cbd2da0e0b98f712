"""How is a plan emitted for a target that cannot express all of it?  Honestly: with numbers of its own.

1. The target expresses the plan: its files are the plan.
2. The target's projection of the plan is legal and fits: it is estimated again inside the target's rules.
3. Otherwise the problem is planned again inside the target's rules: the best plan that it can run.

What was given up and what that costs is part of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.backends.emission.assemble import PLAN_MARKDOWN, launch_again
from planner.backends.emission.describe import plan_markdown
from planner.backends.emission.elsewhere import runs_whole, with_keepers
from planner.backends.emission.emission import Emission, LauncherName, Projection, TargetName
from planner.backends.launch.pairs import demand_pair
from planner.backends.launch.settings import LaunchSettings
from planner.backends.registry import named_release, target_module
from planner.diff import DERIVED_FIELDS, strategy_changes, value_words
from planner.errors import DocumentInvalid, NoFeasiblePlan, TargetRefused
from planner.plan import Plan
from planner.problem import Problem


@dataclass(frozen=True, slots=True)
class TargetEmission:
    """An emission whose plan has numbers of its own, and how much the target's limits cost."""

    emission: Emission
    slower_by: float
    """Step time of the emitted plan over the wanted one, minus one; 0 when nothing was given up."""


def emit_for_target(
    plan: Plan,
    target: str,
    launcher: LauncherName,
    settings: LaunchSettings = LaunchSettings(),  # noqa: B008  # frozen
) -> TargetEmission:
    """Emit ``plan`` for ``target`` (``NAME`` or ``NAME==VERSION``), or the nearest that it can run.

    Raises NotFound for an unknown target, TargetRefused when the target can run no plan of the problem at all or the
    launcher does not go with it, DocumentInvalid for settings that do not fit the plan.
    """
    name, version = named_release(target)
    demand_pair(name, launcher)
    module = target_module(name)
    projected, projections = module.project(plan)
    if not projections:
        return TargetEmission(launch_again(_emit(plan, plan, name, launcher, version), settings), 0.0)
    problem = inside_target(plan.problem, name)
    costed = _cost_again(problem, projected)
    if costed is None:
        costed = _plan_again(problem, name)
        projections = _differences(plan, costed, name)
    emission = launch_again(_emit(plan, costed, name, launcher, version), settings)
    emission = replace(emission, projections=with_keepers((*projections, *emission.projections), plan, name))
    files = {**emission.files, PLAN_MARKDOWN: plan_markdown(emission)}
    slower_by = emission.plan.step_time_s / plan.step_time_s - 1
    return TargetEmission(replace(emission, files=files), slower_by)


def _emit(wanted: Plan, plan: Plan, target: TargetName, launcher: LauncherName, version: str) -> Emission:
    """The target's files.  Raises TargetRefused, with the targets that run the wanted plan as it is."""
    try:
        return target_module(target).emit(plan, launcher, version)
    except TargetRefused as error:
        others = runs_whole(wanted, but=target)
        hint = f"{error.hint}; {', '.join(others)} can run this plan as it is" if others else error.hint
        raise TargetRefused(error.what, where=error.where, hint=hint) from error


def inside_target(problem: Problem, target: TargetName) -> Problem:
    """The same question, with the answer limited to what ``target`` can run."""
    constraints = problem.constraints.model_copy(update={"target": target})
    return problem.model_copy(update={"constraints": constraints})


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
