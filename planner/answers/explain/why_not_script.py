"""A given run beside a plan: the run's own strategy, whole, under the software that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.answers.diff import diff_plans
from planner.answers.explain.why_not import WhyNot
from planner.errors import MeshwrightError
from planner.plan.limits import missing
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.estimate import estimate
from planner.strategy.relief_layers import relief_layers
from planner.strategy.text import complete_strategy


def given_run(problem: Problem, given: Mapping[str, Any], chunk_layers: tuple[int, ...] | None, backend: str) -> Plan:
    """The prediction of a run that is there: nothing of it is chosen, so pins and forbids of the question are dropped.

    Raises FindingsInvalid for a strategy that does not hold together or that the back-end refuses.
    """
    constraints = problem.constraints.model_copy(update={"pins": {}, "forbids": (), "backends": (backend,)})
    asked = problem.model_copy(update={"constraints": constraints})
    cluster, workload = problem.cluster, problem.workload
    strategy, _ = complete_strategy(given, cluster.num_devices, workload.global_batch_size)
    return estimate(asked, strategy, chunk_layers, given, relief_layers(given), launched=True)


def why_not_run(plan: Plan, given: Mapping[str, Any], chunk_layers: tuple[int, ...] | None, backend: str) -> WhyNot:
    """The same run as the answer to "why not mine?", compared with the plan term by term."""
    words = {name: "+".join(value) if isinstance(value, tuple) else value for name, value in given.items()}
    try:
        other = given_run(plan.problem, given, chunk_layers, backend)
    except MeshwrightError as error:
        rules = tuple(line.strip(" -") for line in error.what.splitlines() if line.strip(" -"))
        return WhyNot(
            plan_id=plan.plan_id,
            pins=words,
            possible=False,
            already_so=False,
            sentence=f"Your run does not work on the plan's question: {rules[0].rstrip('.')}.",
            rules=rules,
            relaxations=() if error.hint is None else (error.hint,),
        )
    diff = diff_plans(plan, other)
    slower_by = other.step_time_s / plan.step_time_s - 1
    pace = f"{abs(slower_by):.1%} {'slower' if slower_by > 0 else 'faster'}" if slower_by else "as fast"
    fits = other.status != "infeasible"
    sentence = f"Your run takes {other.step_time_s:.3f} s a step, {pace} than the plan"
    sentence += "" if fits else f"; it does not fit: {'; '.join(missing(other)) or 'a limit is broken'}"
    return WhyNot(
        plan_id=plan.plan_id,
        pins=words,
        possible=fits,
        already_so=not diff.strategy,
        sentence=f"{sentence}.",
        other=other,
        slower_by=slower_by,
        strategy=diff.strategy,
        breakdown_s=diff.breakdown_s,
        peak_memory_bytes=diff.peak_memory_bytes,
        binding=None if fits else "memory",
    )
