"""The sensitivity of a plan: its speed, and whether it stays the best, when an input is off by 10 or 20 %.

Each lever scales one input of the problem.  For each change the plan's own strategy is estimated again, and, if
wanted, the whole search is run again: the difference is the regret of having kept the plan.
Rates are compared as time a token, so that a changed global batch stays comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from planner.answers.over_pools import found_over_pools, is_over_pools, pool_nodes
from planner.backends.asked import problem_of
from planner.errors import BudgetSpent, DocumentInvalid, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.plan.relief import of_stages
from planner.question.problem import Problem
from planner.strategy.strategy import Strategy
from profiles.cluster import Pool
from profiles.document import Document

if TYPE_CHECKING:
    from planner.search.options import SearchOptions

DEFAULT_CHANGES = (-0.2, -0.1, 0.1, 0.2)
NEGLIGIBLE_REGRET = 1e-3
"""A plan within 0.1 % of the new best counts as still best: no prediction is that exact."""


class SensitivityPoint(Document):
    """One input changed by one fraction."""

    lever: str
    change: float = Field(description="what really changed, as a fraction (a batch is rounded to whole micro-batches)")
    fits: bool = Field(description="the plan's strategy still fits")
    step_time_s: float | None = None
    time_per_token_change: float | None = Field(default=None, description="of the plan's strategy, as a fraction")
    reason: str = Field(default="", description="why there is no number, or why no plan exists")
    best_step_time_s: float | None = Field(default=None, description="of the re-planned best")
    best_strategy_changes: tuple[str, ...] | None = Field(default=None, description="fields in which the best differs")
    regret: float | None = Field(default=None, description="plan's step time over the new best, minus one")
    stays_best: bool | None = None


class LeverSummary(Document):
    """One bar of the tornado: the worst and the best that this lever does."""

    lever: str
    lowest: float = Field(description="smallest change of time a token, as a fraction")
    highest: float
    swing: float
    stays_best: bool | None = None


class Sensitivity(Document):
    """All points, and the levers sorted by swing (the tornado)."""

    schema_version: int = 1
    plan_id: str
    step_time_s: float
    replanned: bool
    tornado: tuple[LeverSummary, ...]
    points: tuple[SensitivityPoint, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class _Case:
    """A changed problem and the plan's strategy in it."""

    lever: str
    change: float
    problem: Problem
    strategy: Strategy


def sensitivity(
    plan: Plan,
    changes: Sequence[float] = DEFAULT_CHANGES,
    *,
    replan: bool = True,
    options: SearchOptions | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sensitivity:
    """Estimate (and re-plan) under every lever and change.  ``progress(done, total)`` is called after each case.

    Raises DocumentInvalid for a change of -100 % or less, or one that is no number.
    """
    for change in changes:
        if not -1 < change < 100 or change == 0:
            raise DocumentInvalid(
                f"a change of {change:.0%} makes no input", where="--changes", hint="give percentages above -100, not 0"
            )
    if is_over_pools(plan):
        return _of_nodes(plan, replan, progress)
    cases = _cases(plan, changes)
    points = []
    for done, case in enumerate(cases, start=1):
        points.append(_point(plan, case, replan, options))
        if progress is not None:
            progress(done, len(cases))
    tornado = _tornado(points)
    return Sensitivity(
        plan_id=plan.plan_id,
        step_time_s=plan.step_time_s,
        replanned=replan,
        tornado=tornado,
        points=tuple(points),
        summary=_summary(tornado, points),
    )


def _of_nodes(plan: Plan, replan: bool, progress: Callable[[int, int], None] | None) -> Sensitivity:
    """What one more node of each pool would give, searched again.  Raises DocumentInvalid without ``replan``."""
    if not replan:
        raise DocumentInvalid(
            "a plan over several kinds of devices is asked with one more node of each, which is searched again",
            where="plan",
            hint="let it search: without --no-replan, replan=true in a request",
        )
    points, nodes = [], pool_nodes(plan)
    for done, (name, count) in enumerate(nodes.items(), start=1):
        points.append(_one_more(plan, name, count))
        if progress is not None:
            progress(done, len(nodes))
    tornado = tuple(
        LeverSummary(lever=each.lever, lowest=min(gain, 0.0), highest=max(gain, 0.0), swing=abs(gain))
        for each in sorted(points, key=lambda point: point.best_step_time_s or plan.step_time_s)
        for gain in [(each.best_step_time_s or plan.step_time_s) / plan.step_time_s - 1]
    )
    told = "; ".join(f"{each.lever}: {each.highest + each.lowest:+.1%}" for each in tornado)
    return Sensitivity(
        plan_id=plan.plan_id, step_time_s=plan.step_time_s, replanned=True, tornado=tornado, points=tuple(points),
        summary=f"Step time with one more node, searched again: {told}.",
    )  # fmt: skip


def _one_more(plan: Plan, name: str, count: int) -> SensitivityPoint:
    """The best plan with one more node of a pool."""
    lever, change = f"one more node of {name}", 1 / count
    try:
        other = found_over_pools(plan, problem_of(plan), {name: 1})
    except (NoFeasiblePlan, BudgetSpent) as error:
        return SensitivityPoint(lever=lever, change=change, fits=True, reason=str(error))
    differs = tuple(key for key, value in other.strategy.items() if plan.strategy.get(key) != value)
    return SensitivityPoint(
        lever=lever,
        change=change,
        fits=True,
        step_time_s=plan.step_time_s,
        best_step_time_s=other.step_time_s,
        best_strategy_changes=differs,
        regret=plan.step_time_s / other.step_time_s - 1,
        stays_best=other.step_time_s >= plan.step_time_s * (1 - NEGLIGIBLE_REGRET),
    )


def _scale_pools(scale: Callable[[Pool, float], Pool]) -> Callable[[Problem, float], Problem]:
    def scaled(problem: Problem, factor: float) -> Problem:
        pools = tuple(scale(pool, factor) for pool in problem.cluster.pools)
        cluster = problem.cluster.model_copy(update={"pools": pools})
        return problem.model_copy(update={"cluster": cluster})

    return scaled


def _compute(pool: Pool, factor: float) -> Pool:
    peaks = {dtype: rate * factor for dtype, rate in pool.device.peak_flops_per_s.items()}
    return pool.model_copy(update={"device": pool.device.model_copy(update={"peak_flops_per_s": peaks})})


def _scale_up(pool: Pool, factor: float) -> Pool:
    link = pool.scale_up
    pair = link.pair_bandwidth_bytes_per_s
    update: dict[str, Any] = {"bandwidth_bytes_per_s": link.bandwidth_bytes_per_s * factor}
    if pair is not None:
        update["pair_bandwidth_bytes_per_s"] = pair * factor
    return pool.model_copy(update={"scale_up": link.model_copy(update=update)})


def _nic(pool: Pool, factor: float) -> Pool:
    return pool.model_copy(update={"nic_bandwidth_bytes_per_s": pool.nic_bandwidth_bytes_per_s * factor})


def _memory(pool: Pool, factor: float) -> Pool:
    device = pool.device.model_copy(update={"memory_bytes": int(pool.device.memory_bytes * factor)})
    return pool.model_copy(update={"device": device})


LEVERS: dict[str, Callable[[Problem, float], Problem]] = {
    "compute_rate": _scale_pools(_compute),
    "scale_up_bandwidth": _scale_pools(_scale_up),
    "nic_bandwidth": _scale_pools(_nic),
    "memory_capacity": _scale_pools(_memory),
}
"""Lever -> the problem with that input scaled; the global batch is the fifth lever, see ``_batch_case``."""


def _cases(plan: Plan, changes: Sequence[float]) -> list[_Case]:
    strategy = plan.chosen()
    cases = [
        _Case(lever, change, scale(problem_of(plan), 1 + change), strategy)
        for lever, scale in LEVERS.items()
        for change in changes
    ]
    batches = [case for change in changes if (case := _batch_case(plan, strategy, change)) is not None]
    unique = {case.strategy.num_microbatches: case for case in batches}
    return cases + list(unique.values())


def _batch_case(plan: Plan, strategy: Strategy, change: float) -> _Case | None:
    """The nearest global batch in that direction which the strategy can run; None when there is none."""
    old = strategy.num_microbatches
    step = strategy.microbatch_group_size if old % max(strategy.microbatch_group_size, 1) == 0 else 1
    step = max(step, 1)
    moved = max(round(abs(change) * old / step), 1) * step
    new = old + moved if change > 0 else old - moved
    if new < 1:
        return None
    changed = replace(strategy, num_microbatches=new)
    workload = plan.problem.workload.model_copy(update={"global_batch_size": changed.global_batch_size})
    problem = problem_of(plan).model_copy(update={"workload": workload})
    return _Case("global_batch_size", new / old - 1, problem, changed)


def _point(plan: Plan, case: _Case, replan: bool, options: SearchOptions | None) -> SensitivityPoint:
    from planner.search.estimate import estimate

    layers = tuple(chunk.num_layers for chunk in sorted(_chunks(plan), key=lambda chunk: chunk.chunk))
    fields: dict[str, Any] = {"lever": case.lever, "change": case.change, "fits": False}
    kept: Plan | None = None
    try:
        kept = estimate(case.problem, case.strategy, layers, relief=of_stages(plan))
    except DocumentInvalid as error:
        fields["reason"] = " ".join(error.what.split())
    if kept is not None:
        tokens = case.problem.workload.global_batch_size / plan.problem.workload.global_batch_size
        fields |= {
            "fits": kept.status != "infeasible",
            "step_time_s": kept.step_time_s,
            "time_per_token_change": kept.step_time_s / tokens / plan.step_time_s - 1,
        }
    if replan:
        fields |= _replanned(case, kept, options)
    return SensitivityPoint(**fields)


def _replanned(case: _Case, kept: Plan | None, options: SearchOptions | None) -> dict[str, Any]:
    from planner.search.find import find_plan
    from planner.search.options import SearchOptions

    try:
        best = find_plan(case.problem, options or SearchOptions(top_k=0))
    except (NoFeasiblePlan, BudgetSpent) as error:
        return {"reason": " ".join(error.what.split()), "stays_best": False}
    differs = tuple(key for key, value in best.strategy.items() if case.strategy.to_dict().get(key) != value)
    fits = kept is not None and kept.status != "infeasible"
    # A kept strategy may even win by a hair: the search breaks exact ties its own way.
    regret = max(kept.step_time_s / best.step_time_s - 1, 0.0) if fits and kept is not None else None
    return {
        "best_step_time_s": best.step_time_s,
        "best_strategy_changes": differs,
        "regret": regret,
        "stays_best": regret is not None and regret <= NEGLIGIBLE_REGRET,
    }


def _chunks(plan: Plan) -> list[Any]:
    return [chunk for stage in plan.stages for chunk in stage.chunks]


def _tornado(points: Sequence[SensitivityPoint]) -> tuple[LeverSummary, ...]:
    rows = []
    for lever in dict.fromkeys(point.lever for point in points):
        mine = [point for point in points if point.lever == lever]
        # The time of a strategy that does not fit is no time that anybody would see.
        known = [
            point.time_per_token_change for point in mine if point.fits and point.time_per_token_change is not None
        ]
        verdicts = [point.stays_best for point in mine if point.stays_best is not None]
        low, high = min(known, default=0.0), max(known, default=0.0)
        stays = all(verdicts) if verdicts else None
        rows.append(
            LeverSummary(
                lever=lever,
                lowest=min(low, 0.0),
                highest=max(high, 0.0),
                swing=max(high, 0.0) - min(low, 0.0),
                stays_best=stays,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.swing, row.lever)))


def _summary(tornado: Sequence[LeverSummary], points: Sequence[SensitivityPoint]) -> str:
    first = tornado[0]
    reach = f"{first.lowest:+.1%} to {first.highest:+.1%} time a token"
    sentence = f"Speed depends most on {first.lever.replace('_', ' ')} ({reach})"
    broken = sorted({point.lever.replace("_", " ") for point in points if not point.fits})
    if broken:
        sentence += f"; the strategy stops fitting under a changed {', '.join(broken)}"
    judged = [point for point in points if point.stays_best is not None]
    if judged:
        kept = sum(bool(point.stays_best) for point in judged)
        sentence += f"; it stays the best choice in {kept} of {len(judged)} cases"
    return sentence + "."
