"""The best plan with the wished fields, or what makes them impossible, against the plan at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from planner.answers.diff import FieldChange, TermChange, diff_plans
from planner.answers.explain.neighbours import adapt
from planner.answers.over_pools import found_over_pools, is_over_pools
from planner.backends.asked import problem_of
from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.plan.limits import missing
from planner.plan.plan import Plan
from planner.plan.relief import relieves_every_layer
from planner.predict.step_terms import term_words
from planner.question.problem import Problem
from planner.strategy.fields import value_words
from planner.strategy.relief_layers import policies, relief_layers
from profiles.document import Document
from profiles.validation import FindingsInvalid

if TYPE_CHECKING:
    from planner.search.options import SearchOptions, SearchProgress


class WhyNot(Document):
    """The answer to a counterfactual; ``other`` is the best plan that has the wished fields, if one exists."""

    schema_version: int = 1
    plan_id: str
    pins: dict[str, int | str | bool]
    possible: bool
    already_so: bool
    sentence: str
    other: Plan | None = None
    slower_by: float | None = None
    strategy: tuple[FieldChange, ...] = ()
    breakdown_s: tuple[TermChange, ...] = ()
    peak_memory_bytes: tuple[TermChange, ...] = ()
    binding: str | None = None
    rules: tuple[str, ...] = ()
    relaxations: tuple[str, ...] = ()
    pruned: dict[str, int] = Field(default_factory=dict)


def why_not(
    plan: Plan,
    pins: Mapping[str, int | str | bool],
    options: SearchOptions | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
) -> WhyNot:
    """Plan the same problem again with ``pins`` added, and compare.

    Raises DocumentInvalid for pins that are no strategy fields, BudgetSpent when the time limit ends first.
    """
    from planner.search.find import find_plan
    from planner.search.options import SearchOptions

    if _already_so(plan, pins):
        words = ", ".join(f"{key}={value_words(value)}" for key, value in pins.items())
        sentence = f"The plan already has {words}."
        return WhyNot(plan_id=plan.plan_id, pins=dict(pins), possible=True, already_so=True, sentence=sentence)
    problem = with_pins(problem_of(plan), pins)
    _check_pins(problem)
    try:
        if is_over_pools(plan):
            other = found_over_pools(plan, problem)
        else:
            other = find_plan(problem, options or SearchOptions(), progress)
    except NoFeasiblePlan as error:
        return _impossible(plan, pins, error)
    return _possible(plan, pins, other)


def _already_so(plan: Plan, pins: Mapping[str, Any]) -> bool:
    same = all(plan.strategy.get(key) == value for key, value in policies(pins).items())
    # A policy on every layer is another wish than one where it is needed.
    return same and (relief_layers(pins) != "every" or relieves_every_layer(plan))


def _check_pins(problem: Problem) -> None:
    """Refuse pins that the plan's own question forbids.  Raises FindingsInvalid at the wished fields."""
    from planner.search.choices import checked_pins

    try:
        checked_pins(problem.constraints)
    except FindingsInvalid as error:
        wished = [replace(each, pointer=each.pointer.removeprefix("/pins"), also=()) for each in error.findings]
        raise FindingsInvalid(wished, "--why-not") from None


def with_pins(problem: Problem, pins: Mapping[str, int | str | bool]) -> Problem:
    """The problem with more pins; a new pin replaces an old one of the same field."""
    constraints = problem.constraints
    merged = constraints.model_copy(update={"pins": {**constraints.pins, **pins}})
    return problem.model_copy(update={"constraints": merged})


def _possible(plan: Plan, pins: Mapping[str, Any], other: Plan) -> WhyNot:
    diff = diff_plans(plan, other)
    slower_by = other.step_time_s / plan.step_time_s - 1
    costs = sorted((each for each in diff.breakdown_s if each.change > 0), key=lambda each: -each.change)
    saves = sorted((each for each in diff.breakdown_s if each.change < 0), key=lambda each: each.change)
    words = ", ".join(f"{key}={value_words(value)}" for key, value in pins.items())
    pace = f"{slower_by:.1%} slower" if slower_by > 0 else f"{-slower_by:.1%} faster" if slower_by < 0 else "as fast"
    sentence = f"The best plan with {words} takes {other.step_time_s:.3f} s a step, {pace}"
    if costs:
        sentence += f"; it pays {costs[0].change:.3g} s more for {term_words(costs[0].term)}"
    if saves:
        sentence += f" and saves {-saves[0].change:.3g} s on {term_words(saves[0].term)}"
    return WhyNot(
        plan_id=plan.plan_id,
        pins=dict(pins),
        possible=True,
        already_so=False,
        sentence=sentence + ".",
        other=other,
        slower_by=slower_by,
        strategy=diff.strategy,
        breakdown_s=diff.breakdown_s,
        peak_memory_bytes=diff.peak_memory_bytes,
    )


def _impossible(plan: Plan, pins: Mapping[str, Any], error: NoFeasiblePlan) -> WhyNot:
    words = ", ".join(f"{key}={value_words(value)}" for key, value in pins.items())
    rules = broken_rules(plan, pins)
    reason = rules[0] if rules else error.what
    return WhyNot(
        plan_id=plan.plan_id,
        pins=dict(pins),
        possible=False,
        already_so=False,
        sentence=f"No plan has {words}: {reason.rstrip('.')}.",
        binding=error.binding,
        rules=rules,
        relaxations=error.relaxations,
        pruned=error.pruned,
    )


def broken_rules(plan: Plan, pins: Mapping[str, Any]) -> tuple[str, ...]:
    """What the plan's own strategy, changed only by the pins, breaks: divisibility, a rule, or memory."""
    from planner.search.estimate import estimate

    workload, problem = plan.problem.workload, with_pins(problem_of(plan), pins)
    strategy = adapt(plan.chosen(), pins, plan.problem.cluster.num_devices, workload.global_batch_size)
    if strategy is None:
        return (_indivisible(plan, pins),)
    try:
        other = estimate(problem_of(plan), strategy, given=tuple(pins), relief=relief_layers(problem.constraints.pins))
    except DocumentInvalid as error:
        return tuple(line.strip(" -") for line in error.what.splitlines() if line.strip(" -"))
    return missing(other)


def _indivisible(plan: Plan, pins: Mapping[str, Any]) -> str:
    """Which product does not divide what it has to divide."""
    fields = {**plan.strategy, **policies(pins)}
    devices, batch = plan.problem.cluster.num_devices, plan.problem.workload.global_batch_size
    model_axes = fields["tp"] * fields["cp"] * fields["pp"]
    if devices % model_axes:
        return f"tp * cp * pp = {model_axes} does not divide the {devices:,} devices"
    dp = devices // model_axes
    if pins.get("dp", dp) != dp:
        return f"tp * cp * pp * dp = {model_axes * pins['dp']} is not the {devices:,} devices"
    samples = dp * fields["micro_batch_size"]
    if batch % samples:
        return f"dp * micro_batch_size = {samples} does not divide the global batch of {batch:,}"
    return f"the micro-batches or replicas asked for do not make a global batch of {batch:,} on {devices:,} devices"
