"""The differences of two plans of one step: by cost term, by module, and by the operators that differ most."""

from __future__ import annotations

from collections import defaultdict

from planner.errors import Conflict
from planner.shard.sharding_plan import ShardingPlan
from profiles.document import Document

MOST_OPERATORS = 10


class TermDifference(Document):
    """One term of both plans; ``delta`` = second - first."""

    term: str
    unit: str
    first: float
    second: float
    delta: float


class OperatorDifference(Document):
    """An operator that the plans place differently."""

    name: str
    module_path: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    first_s: float
    second_s: float


class ShardingDifference(Document):
    """Terms, modules, and operators placed differently, the largest differences first."""

    terms: tuple[TermDifference, ...]
    modules: tuple[TermDifference, ...]
    operators: tuple[OperatorDifference, ...]
    num_different: int


def compare_plans(first: ShardingPlan, second: ShardingPlan) -> ShardingDifference:
    """Compare two plans of the same traced step.  Raises Conflict when they are of different steps."""
    if first.traced.graph_hash != second.traced.graph_hash:
        raise Conflict(
            f"the plans are of different steps: {first.traced.title} and {second.traced.title}",
            where="graph_hash",
            hint="compare plans of one module, traced with the same inputs",
        )
    pairs = list(zip(first.operators, second.operators, strict=True))
    different = [
        OperatorDifference(
            name=one.name,
            module_path=one.module_path,
            first=one.outputs[0] or (),
            second=other.outputs[0] or (),
            first_s=one.compute_s + sum(edge.resharding_s for edge in one.inputs),
            second_s=other.compute_s + sum(edge.resharding_s for edge in other.inputs),
        )
        for one, other in pairs
        if (one.outputs, [edge.needed for edge in one.inputs])
        != (other.outputs, [edge.needed for edge in other.inputs])
    ]
    different.sort(key=lambda each: -abs(each.second_s - each.first_s))
    return ShardingDifference(
        terms=_terms(first, second),
        modules=_modules(first, second),
        operators=tuple(different[:MOST_OPERATORS]),
        num_different=len(different),
    )


def _terms(first: ShardingPlan, second: ShardingPlan) -> tuple[TermDifference, ...]:
    rows = [
        _difference("step", "s", first.costs.total_s, second.costs.total_s),
        _difference("compute", "s", first.costs.compute_s, second.costs.compute_s),
    ]
    kinds = [_collectives(first), _collectives(second)]
    rows += [_difference(kind, "s", kinds[0][kind], kinds[1][kind]) for kind in sorted({*kinds[0], *kinds[1]})]
    for term in ("peak_memory_bytes", "parameters_bytes", "states_bytes", "activations_bytes"):
        rows.append(_difference(term, "bytes", getattr(first.costs, term), getattr(second.costs, term)))
    return tuple(rows)


def _collectives(plan: ShardingPlan) -> dict[str, float]:
    """Seconds of resharding by what is sent over which axis; a path of several counts under all its names."""
    seconds: dict[str, float] = defaultdict(float)
    for operator in plan.operators:
        for edge in operator.inputs:
            if edge.resharding_s > 0:
                seconds[f"{operator.phase} {' + '.join(edge.collectives)}"] += edge.resharding_s
    for row in plan.parameters:
        seconds["gradients into states"] += row.gradient_resharding_s
        seconds["updates into parameters"] += row.update_resharding_s
    return seconds


def _modules(first: ShardingPlan, second: ShardingPlan) -> tuple[TermDifference, ...]:
    sums = [_by_module(first), _by_module(second)]
    rows = [
        _difference(path or "(module itself)", "s", sums[0][path], sums[1][path])
        for path in sorted({*sums[0], *sums[1]})
    ]
    return tuple(sorted((row for row in rows if row.delta), key=lambda row: -abs(row.delta)))


def _by_module(plan: ShardingPlan) -> dict[str, float]:
    seconds: dict[str, float] = defaultdict(float)
    for operator in plan.operators:
        seconds[operator.module_path] += operator.compute_s + sum(edge.resharding_s for edge in operator.inputs)
    return seconds


def _difference(term: str, unit: str, first: float, second: float) -> TermDifference:
    return TermDifference(term=term, unit=unit, first=first, second=second, delta=second - first)
