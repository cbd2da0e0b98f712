"""Devices came or went: the layout kept, and the fastest one; what each costs to move to, and which to take.

*keep* holds the layout and moves data parallelism (``planner.answers.replan.keep``); it needs no search.  *fastest* is
the proved best plan on all devices that are left, in the plan's own back-end.  Both train the old global batch; where
that makes *keep* leave devices unused, *keep, nearest batch* stands beside it with the batch that uses them.

Recommended is the faster one, unless its longer move is not repaid within the horizon
(``planner.answers.replan.horizon``) or no checkpoint can be loaded into it.  A change of the global batch is never
recommended while another way exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from planner.answers.replan.horizon import BreakEven, break_even, horizon
from planner.answers.replan.keep import Placed, kept_layout
from planner.answers.replan.lost import Allocation, Lost, allocations
from planner.answers.replan.option import AxisChange, OptionName, ReplanOption, option
from planner.answers.replan.resharding import Resharding
from planner.backends.asked import problem_of
from planner.errors import NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.find import plan_on_all_devices, preferring
from planner.search.options import Progress, SearchOptions
from profiles.document import Document

PreferLayout = Literal["horizon", "keep", "fastest"]


class Staying(Document):
    """What decides which layout to take; nothing needs to be said."""

    prefer_layout: PreferLayout = Field(
        default="horizon",
        description="horizon: as the time until the devices change again says; keep: the old layout, without a search;"
        " fastest: whatever must move",
    )
    horizon_hours: float | None = Field(
        default=None,
        gt=0,
        description="until the devices change again, as when a node returns; null = the mean time to the next failure",
    )
    failures_per_device_hour: float | None = Field(
        default=None, ge=0, le=1, description="in place of those of a published run on this kind of device"
    )
    storage_bandwidth_bytes_per_s: float | None = Field(
        default=None, gt=0, description="what the storage gives, all nodes together; null = the NICs alone bound a read"
    )
    reshardable_checkpoint: bool = Field(
        default=False,
        description="the last checkpoint was written with what the back-end needs to load it into any layout",
    )


class Replan(Document):
    """The new plan beside the old one; ``options`` has every way, the other parts are of the recommended one."""

    schema_version: Literal[2] = 2
    old_plan_id: str
    new_plan_id: str
    devices_before: int
    devices_after: int
    devices_kept: int
    axes: tuple[AxisChange, ...]
    layout_kept: bool = Field(description="no axis changed and each stage keeps its layers")
    slower_by: float = Field(description="time a token over that of the old plan, minus one; negative = faster")
    resharding: Resharding
    recommended: OptionName
    why: str
    options: tuple[ReplanOption, ...]
    break_even: BreakEven | None = Field(description="the kept layout against the fastest; null where one is missing")
    plan: Plan = Field(description="of the recommended option")


def replan(
    plan: Plan,
    lost: Lost,
    staying: Staying | None = None,
    *,
    options: SearchOptions | None = None,
    progress: Progress | None = None,
    known: Callable[[Problem], Plan | None] = lambda problem: None,
) -> Replan:
    """Plan the same problem on the devices of the same kind that are left, or that there are now.

    New nodes come after the old ones.  ``known``: a stored plan that no search could better.  Raises DocumentInvalid
    for what is lost, NoFeasiblePlan, BudgetSpent.
    """
    staying = staying or Staying()
    left = allocations(plan.problem.cluster, lost)
    kept = kept_layout(plan, left)
    placed: dict[OptionName, Placed] = {} if kept is None else {"keep": kept}
    if kept is None or kept.plan.chosen().world_size < left[0].cluster.num_devices:
        near = kept_layout(plan, left, nearest_batch=True)
        if near is not None and (kept is None or near.plan.tokens_per_s > kept.plan.tokens_per_s):
            placed["keep, nearest batch"] = near
    if staying.prefer_layout != "keep":
        options = replace(options or SearchOptions(top_k=0), compare=False)
        try:
            placed["fastest"] = _fastest(plan, left, kept, options, progress, known)
        except NoFeasiblePlan:
            if not placed:
                raise
    if not placed:
        raise NoFeasiblePlan(
            "the layout cannot be kept on these devices",
            binding="layout",
            relaxations=("--prefer-layout fastest plans another one",),
        )
    storage = staying.storage_bandwidth_bytes_per_s
    made = {name: option(name, plan, each, storage) for name, each in placed.items()}
    return _answer(plan, placed, made, staying)


def fastest_problem(plan: Plan, left: Allocation) -> Problem:
    """The question that *fastest* answers on some devices."""
    asked = problem_of(plan).model_copy(update={"cluster": left.cluster})
    return preferring("fastest", asked)


def _fastest(
    plan: Plan,
    left: Sequence[Allocation],
    kept: Placed | None,
    options: SearchOptions,
    progress: Progress | None,
    known: Callable[[Problem], Plan | None],
) -> Placed:
    """The fastest plan over the ways to make equal nodes; the kept layout where that is faster on fewer devices."""
    found, refused = [] if kept is None else [kept], list[NoFeasiblePlan]()
    for allocation in left:
        problem = fastest_problem(plan, allocation)
        try:
            found.append(Placed(known(problem) or plan_on_all_devices(problem, options, progress), allocation))
        except NoFeasiblePlan as error:
            refused.append(error)
    if len(found) == (kept is not None):
        raise refused[0]
    # Of equally fast plans the one that was proved.
    return min(reversed(found), key=lambda each: each.plan.step_time_s)


def _answer(
    plan: Plan, placed: dict[OptionName, Placed], made: dict[OptionName, ReplanOption], staying: Staying
) -> Replan:
    kept, fastest = made.get("keep"), made.get("fastest")
    equal = None
    if kept is not None and fastest is not None:
        device = plan.problem.cluster.pools[0].device.name
        until = horizon(staying.horizon_hours, staying.failures_per_device_hour, device, fastest.devices)
        equal = break_even(kept.tokens_per_s, kept.move.seconds, fastest.tokens_per_s, fastest.move.seconds,
                           fastest.step_time_s, until)  # fmt: skip
    name, why = _recommended(made, equal, staying)
    chosen = made[name]
    return Replan(
        old_plan_id=plan.plan_id,
        new_plan_id=chosen.plan_id,
        devices_before=plan.chosen().world_size,
        devices_after=chosen.devices,
        devices_kept=chosen.devices_kept,
        axes=chosen.axes,
        layout_kept=chosen.layout_kept,
        slower_by=chosen.slower_by,
        resharding=chosen.resharding,
        recommended=name,
        why=why,
        options=tuple(made.values()),
        break_even=equal,
        plan=placed[name].plan,
    )


def _recommended(
    made: dict[OptionName, ReplanOption], equal: BreakEven | None, staying: Staying
) -> tuple[OptionName, str]:
    """Which one, and why."""
    fastest, kept = made.get("fastest"), made.get("keep")
    if fastest is None:
        name: OptionName = "keep" if kept is not None else "keep, nearest batch"
        searched = staying.prefer_layout != "keep"
        return name, "no plan uses all devices that are left" if searched else "the layout is to be kept"
    if staying.prefer_layout == "fastest":
        return "fastest", "the fastest is asked for"
    if kept is None or equal is None:
        return "fastest", "no data parallelism keeps the layout and the global batch on these devices"
    if fastest.strategy == kept.strategy and fastest.devices == kept.devices:
        return "keep", "the kept layout is the fastest"
    blocked = _blocked(fastest, staying)
    if blocked and not _blocked(kept, staying):
        return "keep", blocked
    if equal.seconds is None:
        return "keep", "the kept layout is as fast"
    if equal.horizon_s is not None and equal.seconds > equal.horizon_s:
        return "keep", "the devices change again before the faster layout repays its longer move"
    if fastest.move.seconds <= kept.move.seconds:
        return "fastest", "it is faster, and its move takes no longer"
    return "fastest", "it repays its longer move before the devices change again"


def _blocked(each: ReplanOption, staying: Staying) -> str:
    """Why the state cannot be had in this layout; empty where it can."""
    use = each.checkpoint
    if each.move.source == "peers":
        # All is there still: a checkpoint can be written as it must be before the change.
        return use.why if use.loads == "no" and use.format is not None else ""
    if use.loads == "no":
        return f"the last checkpoint cannot be loaded into the fastest layout: {use.why}"
    if use.loads == "if saved so" and not staying.reshardable_checkpoint:
        return (
            f"the last checkpoint loads into the fastest layout only if it was written with {use.saved_with}; say so"
            " (--reshardable-checkpoint) where it was"
        )
    return ""
