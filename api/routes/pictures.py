"""``/v1/plans/{plan}/...`` for those who draw: the step action by action, the map of ranks, the inputs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.access.auth import Reader
from api.http.openapi import problems
from api.routes.plans import PlanReference
from api.routes.views import computed_view, plan_view
from api.service import service_of
from planner.answers.views.leaning import LeaningView
from planner.answers.views.mesh import MeshView
from planner.answers.views.step import StepView

router = APIRouter(prefix="/v1/plans/{plan}", tags=["plans"])


@router.get(
    "/step",
    summary="The simulated step, as columns to draw",
    response_model=StepView,
    responses=problems(404, 409),
)
async def get_step(request: Request, plan: PlanReference, caller: Reader) -> Response:
    """Every action and transfer of every pipeline rank, what is idle, the critical path, and memory over time."""
    return await plan_view(request, plan, "step", {})


@router.get(
    "/mesh",
    summary="Where every rank runs, and who talks to whom over which network",
    response_model=MeshView,
    responses=problems(404, 409),
)
async def get_mesh(request: Request, plan: PlanReference, caller: Reader) -> Response:
    """Sizes and strides of every axis, the slowest level that its groups cross, and who shares it."""
    return await plan_view(request, plan, "mesh", {})


@router.get(
    "/leaning",
    summary="Which numbers the plan leans on, and what to measure next",
    response_model=LeaningView,
    responses=problems(404, 409),
)
async def get_leaning(
    request: Request,
    plan: PlanReference,
    caller: Reader,
    rows: Annotated[int, Query(ge=1, le=1_000, description="the largest lookups")] = 15,
) -> Response:
    """Every number that the step time was made from: measured, interpolated, extrapolated, transferred, datasheet."""
    return await plan_view(request, plan, "leaning", {"rows": rows})


@router.get(
    "/report",
    summary="The plan as one HTML file to send around",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, **problems(404, 409)},
)
async def get_report(request: Request, plan: PlanReference, caller: Reader) -> Response:
    """Everything that is known of the plan, with drawings; no scripts, nothing from elsewhere."""
    plan_id, content = await computed_view(service_of(request), plan, "report", {})
    headers = {"Content-Disposition": f'attachment; filename="plan-{plan_id[:12]}.html"'}
    return Response(content, media_type="text/html", headers=headers)
