"""What a command prints about a plan: the contract's JSON, or the report for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from planner.plan.plan import Plan
from planner.strategy.schedules import V_SCHEDULES

if TYPE_CHECKING:
    from rich.console import RenderableType

GANTT_WIDTH = 120


def answer_data(plan: Plan, *, wall_s: float | None = None, full: bool = False) -> dict[str, Any]:
    """``plan_id`` and ``problem_id``, then the document; without the embedded problem unless ``full``."""
    document = plan.model_dump(mode="json")
    if not full:
        del document["problem"]
    # Wall-clock time is no part of the plan (equal problems give byte-identical plans), so it is added here.
    document["search"]["wall_s"] = wall_s
    return {"plan_id": plan.plan_id, "problem_id": plan.problem.problem_id, **document}


def answer_tables(
    plan: Plan, *, wall_s: float | None = None, notes: Iterable[str] = (), timeline: bool = True
) -> list[RenderableType]:
    """The report, with the simulated timeline, and closing notes."""
    from planner.cli.render.plan import plan_report

    chart = timeline_chart(plan) if timeline else None
    return [*plan_report(plan, wall_s=wall_s, timeline=chart), *notes]


def timeline_chart(plan: Plan) -> str:
    """The text Gantt chart of the plan's pipeline, with few enough micro-batches that its shape can be seen."""
    from planner.answers.views.words import close_seconds, seconds
    from planner.plan.timeline import plan_timeline
    from planner.predict.schedule.gantt import text_gantt

    all_of_them = plan.chosen().num_microbatches
    shown = drawn_microbatches(plan)
    drawn = plan.model_copy(update={"strategy": {**plan.strategy, "num_microbatches": shown}})
    timeline = plan_timeline(drawn)
    chart = text_gantt(timeline, GANTT_WIDTH)
    if shown == all_of_them:
        after_s, step = plan.step_time_s - timeline.makespan_s, close_seconds(plan.step_time_s)
        # A plan of an older version has a step time of another model.
        whole = f"\n{seconds(after_s)} follow for the optimizer and the rest: a step of {step}." if after_s > 0 else ""
        return f"{chart}{whole}"
    return (
        f"{chart}\nShown with {shown:,} of {all_of_them:,} micro-batches; the middle repeats, "
        "so ranks are idle for a smaller part of the whole step."
    )


def drawn_microbatches(plan: Plan) -> int:
    """Micro-batches in a chart: what its columns can tell apart, but a full pipeline and whole groups at least."""
    strategy = plan.chosen()
    readable = GANTT_WIDTH // (2 * strategy.vpp * 2)
    group = max(strategy.microbatch_group_size, 1)
    # DualPipeV runs two directions at once and needs twice the stages.
    needed = max(readable, 2 * strategy.pp if strategy.schedule in V_SCHEDULES else strategy.pp)
    return min(-(-needed // group) * group, strategy.num_microbatches)
