"""Strategies one move away from a plan, each estimated or refused with the rule.

A move changes one axis or switch; the rest follows (data parallelism takes the devices that are left, the number of
micro-batches keeps the global batch).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isclose
from typing import Any, Literal

from pydantic import Field

from planner.answers.diff import TermChange, term_changes, worst_stage
from planner.backends.asked import problem_of
from planner.errors import DocumentInvalid
from planner.plan.limits import missing
from planner.plan.plan import Plan
from planner.plan.relief import asked_layers
from planner.strategy.fields import value_words
from planner.strategy.relief_layers import ReliefLayers, policies, relief_word
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES, SCHEDULE_NAMES, V_SCHEDULES
from planner.strategy.strategy import Strategy
from profiles.document import Document

Outcome = Literal["faster", "as_fast", "slower", "does_not_fit", "illegal"]

SAME_TIME = 5e-4
"""Step times that differ by less than this fraction are told as equal: it is what a percentage with one digit hides."""

EXPERT_FIELDS = frozenset({"ep", "etp"})
RECOMPUTE_POLICIES: tuple[Literal["none", "selective", "full"], ...] = ("none", "selective", "full")


class Neighbour(Document):
    """One move and what it does, against the plan."""

    move: str = Field(description="for example 'tp 4 -> 8'")
    outcome: Outcome
    step_time_s: float | None = None
    slower_by: float | None = Field(default=None, description="step time over the plan's, minus one")
    peak_memory_bytes: int | None = None
    over_limit_bytes: int | None = Field(
        default=None, description="missing memory on the worst stage; does_not_fit only"
    )
    over_limit_stage: int | None = None
    terms_s: tuple[TermChange, ...] = ()
    reason: str = ""


def neighbours(plan: Plan) -> tuple[Neighbour, ...]:
    """Every neighbour of the plan's strategy that changes anything, fastest first; those that cannot be are last."""
    seen, layers = {plan.chosen()}, asked_layers(plan)
    found: list[Neighbour] = []
    has_experts = plan.problem.model.has_experts
    for move, strategy in moves(plan.chosen(), plan.problem.workload.global_batch_size, layers):
        if strategy not in seen and (has_experts or move.split()[0] not in EXPERT_FIELDS):
            seen.add(strategy)
            neighbour = judge(plan, move, strategy)
            if not _changes_nothing(plan, neighbour):
                found.append(neighbour)
    order = {"faster": 0, "does_not_fit": 1, "as_fast": 2, "slower": 2, "illegal": 3}
    return tuple(sorted(found, key=lambda each: (order[each.outcome], each.slower_by or 0.0, each.move)))


def judge(plan: Plan, move: str, strategy: Strategy) -> Neighbour:
    """Estimate one other strategy for the plan's problem."""
    from planner.search.estimate import estimate

    try:
        # The move is chosen; what a back-end ties to it follows.
        other = estimate(problem_of(plan), strategy, given=move.split()[:1], relief=asked_layers(plan))
    except DocumentInvalid as error:
        return Neighbour(move=move, outcome="illegal", reason=" ".join(error.what.split()))
    over = other.peak_memory_bytes - other.memory_limit_bytes
    does_not_fit = other.status == "infeasible"
    slower_by = other.step_time_s / plan.step_time_s - 1
    return Neighbour(
        move=move,
        outcome="does_not_fit" if does_not_fit else _pace(slower_by),
        step_time_s=other.step_time_s,
        slower_by=slower_by,
        peak_memory_bytes=other.peak_memory_bytes,
        over_limit_bytes=over if does_not_fit and over > 0 else None,
        over_limit_stage=worst_stage(other).stage if does_not_fit and over > 0 else None,
        terms_s=term_changes(plan.breakdown_s, other.breakdown_s),
        reason=_excluded(plan, strategy) or ("" if over > 0 else "; ".join(missing(other))),
    )


def _pace(slower_by: float) -> Outcome:
    return "as_fast" if abs(slower_by) < SAME_TIME else "faster" if slower_by < 0 else "slower"


def _changes_nothing(plan: Plan, neighbour: Neighbour) -> bool:
    """Whether a relief is allowed that no layer needs: equal time, term by term, and equal memory."""
    return (
        neighbour.step_time_s is not None
        and isclose(neighbour.step_time_s, plan.step_time_s, rel_tol=1e-9)
        and neighbour.peak_memory_bytes == plan.peak_memory_bytes
        and all(isclose(term.a, term.b, rel_tol=1e-9, abs_tol=1e-12) for term in neighbour.terms_s)
    )


def _excluded(plan: Plan, strategy: Strategy) -> str:
    """Which pin or forbid of the problem rules the strategy out, if any does."""
    from planner.search.choices import checked_pins
    from planner.strategy.fields import full_name

    fields = strategy.to_dict()
    forbidden = {full_name(name) for name in plan.problem.constraints.forbids}
    held = checked_pins(plan.problem.constraints)
    broken = [(key, value) for key, value in held.items() if key in fields and fields[key] != value]
    words = [key if key in forbidden else f"{key}={value_words(value)}" for key, value in broken]
    return f"excluded by the pin or forbid of {', '.join(words)}" if words else ""


def moves(base: Strategy, global_batch_size: int, layers: ReliefLayers) -> Iterator[tuple[str, Strategy]]:
    """(name, strategy) for every single move that keeps devices and global batch; ``layers``: which it relieves."""
    for field, value in _single_changes(base):
        strategy = adapt(base, {field: value}, base.world_size, global_batch_size)
        if strategy is not None:
            word = value_words(relief_word(field, value, layers))
            yield f"{field} {value_words(getattr(base, field))} -> {word}", strategy


def adapt(base: Strategy, changes: Mapping[str, Any], world_size: int, global_batch_size: int) -> Strategy | None:
    """``base`` with ``changes``, and everything that they force; None when the numbers do not divide."""
    wanted = policies(changes)
    dp_given = wanted.pop("dp", None)
    if isinstance(wanted.get("recompute_modules"), str):
        wanted["recompute_modules"] = tuple(wanted["recompute_modules"].split("+"))
    made = replace(base, **wanted)
    model_axes = made.tp * made.cp * made.pp
    dp = dp_given or world_size // model_axes
    if model_axes * dp != world_size:
        return None
    dp_replicate, dp_shard = _factors(made, wanted, dp)
    samples = dp * made.micro_batch_size
    num_microbatches = made.num_microbatches if "num_microbatches" in wanted else global_batch_size // samples
    if dp_replicate * dp_shard != dp or num_microbatches * samples != global_batch_size or num_microbatches < 1:
        return None
    made = replace(made, dp_replicate=dp_replicate, dp_shard=dp_shard, num_microbatches=num_microbatches)
    return _coherent(made, base, wanted)


def _factors(made: Strategy, wanted: Mapping[str, Any], dp: int) -> tuple[int, int]:
    """dp_replicate and dp_shard: what was asked, else the old replicas where they divide, else all sharded."""
    if "dp_shard" in wanted:
        return (made.dp_replicate if "dp_replicate" in wanted else max(dp // made.dp_shard, 1)), made.dp_shard
    if dp % made.dp_replicate == 0:
        return made.dp_replicate, dp // made.dp_replicate
    return (made.dp_replicate, 0) if "dp_replicate" in wanted else (1, dp)


def _coherent(made: Strategy, base: Strategy, wanted: Mapping[str, Any]) -> Strategy:
    """Switches that follow from the degrees, unless they were asked for."""
    follow: dict[str, Any] = {}
    follow["sp"] = made.tp > 1 and (base.sp or base.tp == 1)
    if made.tp == 1:
        follow["overlap_tp"] = False
    follow["cp_kind"] = "none" if made.cp == 1 else "ring" if made.cp_kind == "none" else made.cp_kind
    follow |= _coherent_schedule(made, base, wanted)
    if made.recompute != "selective":
        follow["recompute_modules"] = ()
    elif not made.recompute_modules:
        follow["recompute_modules"] = ("attention_core",)
    if made.ep == 1:
        follow |= {"overlap_ep": False, "dispatcher": "alltoall"}
    if made.zero_stage != 1:
        follow["fp8_parameters"] = False
    return replace(made, **{key: value for key, value in follow.items() if key not in wanted})


def _coherent_schedule(made: Strategy, base: Strategy, wanted: Mapping[str, Any]) -> dict[str, Any]:
    schedule, vpp = made.schedule, made.vpp
    if made.pp == 1:
        schedule, vpp = "1f1b", 1
    elif "schedule" in wanted:
        vpp = 2 if schedule in V_SCHEDULES else max(vpp, 2) if schedule in LOOPED_SCHEDULES else 1
    elif "vpp" in wanted and not (vpp > 1 and schedule in LOOPED_SCHEDULES):
        schedule = "interleaved" if vpp > 1 else "1f1b"
    same_pipeline = (base.schedule, base.pp) == (schedule, made.pp)
    group = 0 if schedule not in GROUPED_SCHEDULES else base.microbatch_group_size if same_pipeline else made.pp
    return {"schedule": schedule, "vpp": vpp, "microbatch_group_size": group}


def _single_changes(base: Strategy) -> Iterator[tuple[str, Any]]:
    """Halves and doubles of every degree, and every other value of every switch."""
    for field in ("tp", "pp", "cp", "ep", "etp", "vpp", "micro_batch_size", "dp_replicate"):
        value = getattr(base, field)
        if value % 2 == 0:
            yield field, value // 2
        yield field, value * 2
    for stage in (base.zero_stage - 1, base.zero_stage + 1):
        if 0 <= stage <= 3:
            yield "zero_stage", stage
    for policy in RECOMPUTE_POLICIES:
        if policy != base.recompute:
            yield "recompute", policy
    for schedule in SCHEDULE_NAMES:
        if base.pp > 1 and schedule != base.schedule:
            yield "schedule", schedule
    for switch in ("optimizer_offload", "activation_offload"):
        yield switch, not getattr(base, switch)
