"""The layout of a plan on other devices: its degrees, layers, schedule and recompute held, data parallelism moved.

Held: tp, cp, ep, etp, pp, vpp, the layers of each chunk, schedule, ZeRO stage, recompute and offload with their layers.
Moved: ``dp = devices // (tp cp pp)``, the size of a micro-batch (the old one, half of it, twice it) and their number.
What the degrees leave over stands idle, last nodes first.  The global batch is the old one, so dp must divide it; or,
where that is asked for, the nearest multiple of ``dp * micro_batch_size * microbatch_group_size``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.answers.replan.lost import Allocation
from planner.backends.asked import problem_hardware, problem_of
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan
from planner.plan.relief import of_stages
from planner.question.problem import Problem
from planner.search.branch import Search
from planner.search.estimate import estimate
from planner.search.find import preferring
from planner.search.options import SearchOptions
from planner.strategy.fields import OF_RELIEF
from planner.strategy.relief_layers import ReliefLayers
from planner.strategy.strategy import Strategy
from profiles.validation import FindingsInvalid

HELD = ("tp", "cp", "ep", "etp", "pp", "vpp", "schedule", "zero_stage", "axis_order")
"""Fields that are pinned in the question of a kept layout."""
MOST_TRIED = 24
"""Strategies that are estimated at most before the layout counts as one that cannot be kept."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A plan, and the devices that it uses."""

    plan: Plan
    allocation: Allocation


def kept_layout(plan: Plan, left: Sequence[Allocation], *, nearest_batch: bool = False) -> Placed | None:
    """The layout on most of the devices that are left; None where no data parallelism lets it run and fit.

    ``nearest_batch``: the largest dp with the batch nearest to the old one, in place of the largest dp that divides it.
    Of several allocations the one with most tokens a second.
    """
    found = [each for allocation in left if (each := _on(plan, allocation, nearest_batch)) is not None]
    return max(found, key=lambda each: each.plan.tokens_per_s, default=None)


def _on(plan: Plan, left: Allocation, nearest_batch: bool) -> Placed | None:
    old, tried = plan.chosen(), 0
    fixed = old.tp * old.cp * old.pp
    for dp in range(left.cluster.num_devices // fixed, 0, -1):
        if not nearest_batch and old.global_batch_size % dp:
            continue
        try:
            part = left.part(dp * fixed)
        except DocumentInvalid:
            continue
        problem = _question(plan, part)
        fitting = list[Plan]()
        for strategy in _with_dp(old, dp, nearest_batch):
            tried += 1
            made = _estimate(plan, problem, strategy)
            if made is not None:
                fitting.append(made)
                if nearest_batch:
                    break
        if fitting:
            return Placed(_bounded(max(fitting, key=lambda each: each.tokens_per_s)), part)
        if tried >= MOST_TRIED:
            return None
    return None


def _question(plan: Plan, part: Allocation) -> Problem:
    """What the kept layout answers: the plan's question on these devices, with what is held pinned."""
    asked = preferring("fastest", problem_of(plan))
    held = {name: plan.strategy[name] for name in HELD}
    pins = {name: value for name, value in asked.constraints.pins.items() if name in OF_RELIEF} | held
    constraints = asked.constraints.model_copy(update={"pins": pins})
    return asked.model_copy(update={"cluster": part.cluster, "constraints": constraints})


def _bounded(made: Plan) -> Plan:
    """The plan with a bound: nothing of its pinned question is faster than the least bound of its strategies."""
    search = Search(made.problem, problem_hardware(made.problem), SearchOptions(top_k=0))
    bound_s = min(search.waves.least_bound_s, made.step_time_s)
    count = max(1, len(search.space.cores))
    proof = "the layout was given; the bound is the least one of the strategies that hold it"
    report = made.search.model_copy(update={"enumerated": count, "bounded": count, "proof": proof})
    gap = max(0.0, 1.0 - bound_s / made.step_time_s)
    return made.model_copy(update={"lower_bound_s": bound_s, "gap": gap, "search": report})


def _with_dp(old: Strategy, dp: int, nearest_batch: bool) -> Iterator[Strategy]:
    """The strategy with this data parallelism, in the sizes of micro-batches that may serve."""
    for replicate, shard in _replicas(old, dp):
        moved = replace(old, dp_replicate=replicate, dp_shard=shard)
        if nearest_batch:
            step = old.micro_batch_size * dp * max(1, old.microbatch_group_size)
            below = old.global_batch_size // step
            for count in sorted({max(1, below), below + 1}, key=lambda each: abs(each * step - old.global_batch_size)):
                yield replace(moved, num_microbatches=count * max(1, old.microbatch_group_size))
            return
        each, sizes = (
            old.global_batch_size // dp,
            (old.micro_batch_size, old.micro_batch_size * 2, old.micro_batch_size // 2),
        )
        for size in sizes:
            if size and each % size == 0:
                yield replace(moved, micro_batch_size=size, num_microbatches=each // size)


def _replicas(old: Strategy, dp: int) -> Iterator[tuple[int, int]]:
    """(dp_replicate, dp_shard): the old number of replicas where it divides dp, else the old shards, else none."""
    if dp % old.dp_replicate == 0:
        yield old.dp_replicate, dp // old.dp_replicate
    elif dp % old.dp_shard == 0:
        yield dp // old.dp_shard, old.dp_shard
    else:
        yield 1, dp


def _estimate(plan: Plan, problem: Problem, strategy: Strategy) -> Plan | None:
    """The prediction with the plan's own layers; None where the strategy breaks a rule or does not fit."""
    if strategy.global_batch_size != problem.workload.global_batch_size:
        workload = problem.workload.model_copy(update={"global_batch_size": strategy.global_batch_size})
        problem = problem.model_copy(update={"workload": workload})
    chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    layers = tuple(chunk.num_layers for chunk in chunks)
    relieves = strategy.recompute != "none" or strategy.activation_offload
    ways: tuple[ReliefLayers, ...] = (of_stages(plan), "where_needed") if relieves else ("every",)
    for relief in ways:
        try:
            made = estimate(problem, strategy, layers, relief=relief)
        except FindingsInvalid:
            continue
        if made.status != "infeasible":
            return made
    return None
