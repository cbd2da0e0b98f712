"""The difference of two plans: question, strategy, stages, time by term, memory by term.

Changes are ``b - a``: positive means that plan b takes more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from pydantic import Field

from planner.plan.plan import MemoryBill, Plan, StagePlan
from planner.plan.relief import offload_words, recompute_words
from planner.predict.step_terms import MEMORY_TERMS, TERM_WORDS
from planner.question.problem import Problem
from planner.strategy.fields import DERIVED_FIELDS, value_words
from planner.strategy.strategy import Strategy
from profiles.document import Document


class FieldChange(Document):
    """A value that is not the same; ``field`` is a JSON pointer or a strategy field, None = absent on that side."""

    field: str
    a: Any
    b: Any


class TermChange(Document):
    """A quantity on both sides, in the unit of the table that holds it (seconds or bytes)."""

    term: str
    a: float
    b: float
    change: float


class StageChange(Document):
    """A pipeline rank whose content differs; None = that plan has no such stage."""

    stage: int
    layers: tuple[int | None, int | None]
    recompute: tuple[str | None, str | None]
    offload: tuple[str | None, str | None]
    peak_memory_bytes: tuple[int | None, int | None]


class PlanDiff(Document):
    """Everything that separates plan ``b`` from plan ``a``."""

    schema_version: int = 1
    a: str = Field(description="plan_id")
    b: str = Field(description="plan_id")
    identical: bool
    same_problem: bool = Field(description="the same question, to whichever back-ends, whichever plan it prefers")
    summary: str
    problem: tuple[FieldChange, ...] = Field(description="every leaf that differs, by JSON pointer")
    strategy: tuple[FieldChange, ...]
    stages: tuple[StageChange, ...]
    step_time_s: TermChange
    breakdown_s: tuple[TermChange, ...]
    peak_memory_bytes: tuple[TermChange, ...] = Field(description="worst stage of each plan, by term")


def diff_plans(a: Plan, b: Plan) -> PlanDiff:
    """Compare two plans, of the same problem or not."""
    same_problem = _work(a.problem) == _work(b.problem)
    strategy = strategy_changes(a.strategy, b.strategy)
    return PlanDiff(
        a=a.plan_id,
        b=b.plan_id,
        identical=a.plan_id == b.plan_id,
        same_problem=same_problem,
        summary=_summary(a, b, strategy, same_problem),
        problem=tuple(_leaf_changes(a.problem.model_dump(mode="json"), b.problem.model_dump(mode="json"))),
        strategy=strategy,
        stages=_stage_changes(a.stages, b.stages),
        step_time_s=_term("step_time_s", a.step_time_s, b.step_time_s),
        breakdown_s=term_changes(a.breakdown_s, b.breakdown_s),
        peak_memory_bytes=term_changes(_bill(worst_stage(a)), _bill(worst_stage(b))),
    )


def _work(problem: Problem) -> Problem:
    """The question without its back-ends and which of the fast plans it prefers: what makes step times comparable."""
    constraints = problem.constraints.model_copy(update={"backends": ()})
    objective = problem.objective.model_copy(update={"prefer": "fastest"})
    return problem.model_copy(update={"constraints": constraints, "objective": objective})


def strategy_changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """Strategy fields with different values, in the strategy's own order."""
    # A stored plan has its keys sorted.
    own = [each.name for each in fields(Strategy)]
    keys = dict.fromkeys([*(name for name in own if name in a or name in b), *a, *b])
    return tuple(FieldChange(field=key, a=a.get(key), b=b.get(key)) for key in keys if a.get(key) != b.get(key))


def term_changes(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[TermChange, ...]:
    """Every term of either side (absent = 0), in the order of a report: a plan that was stored has lost its own."""
    named = {**a, **b}
    order = [*(key for key in TERM_WORDS if key in named), *(key for key in named if key not in TERM_WORDS)]
    return tuple(_term(key, a.get(key, 0), b.get(key, 0)) for key in order)


def worst_stage(plan: Plan) -> StagePlan:
    """The stage with the highest peak memory; the first of equals."""
    return max(plan.stages, key=lambda stage: stage.peak_memory_bytes.total)


def _term(term: str, a: float, b: float) -> TermChange:
    return TermChange(term=term, a=a, b=b, change=b - a)


def _bill(stage: StagePlan) -> dict[str, float]:
    bill: MemoryBill = stage.peak_memory_bytes
    return {term: getattr(bill, term) for term in (*MEMORY_TERMS, "total")}


def _stage_changes(a: tuple[StagePlan, ...], b: tuple[StagePlan, ...]) -> tuple[StageChange, ...]:
    changes = []
    for index in range(max(len(a), len(b))):
        left = a[index] if index < len(a) else None
        right = b[index] if index < len(b) else None
        if left == right:
            continue
        changes.append(
            StageChange(
                stage=index,
                layers=(left.layers if left else None, right.layers if right else None),
                recompute=(recompute_words(left) if left else None, recompute_words(right) if right else None),
                offload=(offload_words(left) if left else None, offload_words(right) if right else None),
                peak_memory_bytes=(
                    left.peak_memory_bytes.total if left else None,
                    right.peak_memory_bytes.total if right else None,
                ),
            )
        )
    return tuple(changes)


def _summary(a: Plan, b: Plan, strategy: tuple[FieldChange, ...], same_problem: bool) -> str:
    """One sentence: who is faster, by how much, and in what they differ."""
    if a.plan_id == b.plan_id:
        return "The two plans are the same."
    if same_problem:
        ratio, measure = b.step_time_s / a.step_time_s, "a step"
    else:
        # Different batches make step times incomparable; time per token stays comparable.
        ratio, measure = a.tokens_per_s / b.tokens_per_s, "a token"
    if abs(ratio - 1) < 5e-5:
        speed = f"Both take the same time {measure}"
    else:
        speed = f"Plan b takes {abs(ratio - 1):.1%} {'more' if ratio > 1 else 'less'} time {measure}"
    told = [each for each in strategy if each.field not in DERIVED_FIELDS]
    fields = ", ".join(f"{each.field} {value_words(each.a)} -> {value_words(each.b)}" for each in told)
    question = "" if same_problem else "; they answer different problems"
    before, after = _software(a), _software(b)
    software = "" if before == after else f"Back-end: {before} -> {after}. "
    return f"{speed}{question}. {software}" + (f"Strategy: {fields}." if fields else "The strategies are the same.")


def _software(plan: Plan) -> str:
    return f"{plan.backend} {plan.release}".strip()


def _leaf_changes(a: Any, b: Any, pointer: str = "") -> Iterator[FieldChange]:
    """JSON pointers of the smallest parts that differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            yield from _leaf_changes(a.get(key), b.get(key), f"{pointer}/{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from _leaf_changes(left, right, f"{pointer}/{index}")
    elif a != b:
        yield FieldChange(field=pointer, a=a, b=b)
