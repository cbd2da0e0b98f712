"""What does a command print about a plan?  The contract's JSON, or the report for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from planner.plan import Plan

if TYPE_CHECKING:
    from rich.console import RenderableType

GANTT_WIDTH = 96


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
    """The text Gantt chart of the plan's simulated step."""
    from planner.schedule.gantt import gantt
    from planner.timeline import plan_timeline

    return gantt(plan_timeline(plan), width=GANTT_WIDTH)
