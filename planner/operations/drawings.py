"""What of a plan is drawn: the simulated step, where ranks run, which numbers it leans on, the whole as one page."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.answers.explain.leaning import LeaningView, leaning_view
from planner.answers.views.mesh import MeshView, mesh_view
from planner.answers.views.step import StepView, step_view
from planner.operations.operation import Operation, Session
from planner.operations.plan_reference import PlanName, PlanRequest
from planner.plan.timeline import plan_timeline
from planner.predict.schedule.trace import chrome_trace
from profiles.document import Document


class LeaningRequest(Document):
    """A plan, and how many of its numbers."""

    plan: PlanName
    rows: int = Field(default=15, ge=1, le=1_000, description="the largest lookups")


def _timeline(session: Session, asked: PlanRequest) -> dict[str, Any]:
    plan = session.plan(asked.plan)
    return chrome_trace(plan_timeline(plan), plan.step_time_s)


def _report(session: Session, asked: PlanRequest) -> str:
    from planner.answers.views.report.page import report_page

    return report_page(session.plan(asked.plan))


TIMELINE = Operation(
    name="get_timeline",
    summary="The simulated step, as a trace for Perfetto",
    description="Chrome trace-event JSON: one process a pipeline rank.",
    request=PlanRequest,
    answer=dict[str, Any],
    work=_timeline,
    path="/v1/plans/{plan}/timeline",
    served="view",
    command="plan --trace",
)
STEP = Operation(
    name="get_step",
    summary="The simulated step, as columns to draw",
    description="Every action and transfer of every pipeline rank, what is idle, the critical path, and memory over"
    " time.",
    request=PlanRequest,
    answer=StepView,
    work=lambda session, asked: step_view(session.plan(asked.plan)),
    path="/v1/plans/{plan}/step",
    served="view",
)
MESH = Operation(
    name="get_mesh",
    summary="Where every rank runs, and who talks to whom over which network",
    description="Sizes and strides of every axis, the slowest level that its groups cross, and who shares it.",
    request=PlanRequest,
    answer=MeshView,
    work=lambda session, asked: mesh_view(session.plan(asked.plan)),
    path="/v1/plans/{plan}/mesh",
    served="view",
)
LEANING = Operation(
    name="get_leaning",
    summary="Which numbers the plan leans on, and what to measure next",
    description="Every number that the step time was made from: measured, interpolated, extrapolated, transferred,"
    " datasheet.",
    request=LeaningRequest,
    answer=LeaningView,
    work=lambda session, asked: leaning_view(session.plan(asked.plan), asked.rows),
    path="/v1/plans/{plan}/leaning",
    served="view",
)
REPORT = Operation(
    name="get_report",
    summary="The plan as one HTML file to send around",
    description="Everything that is known of the plan, with drawings; no scripts, nothing from elsewhere.",
    request=PlanRequest,
    answer=str,
    work=_report,
    path="/v1/plans/{plan}/report",
    served="view",
    command="explain --html",
)
