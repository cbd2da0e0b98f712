"""``/v1/plans/{plan}/...``: what can be said about a plan; computed once, then remembered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response

from api.access.auth import Reader
from api.errors import RequestRefused, ServiceBusy
from api.http.conditional import FOR_EVER, REVALIDATE, content_tag, etag, not_modified
from api.http.openapi import problems
from api.http.packing import large_response
from api.routes.plans import FULL_ID, PlanReference
from api.service import Service, service_of
from api.solving.task_runner import TooLong
from api.wire.views import MemoryStage, MemoryView
from planner.answers.explain.why import Explanation
from planner.answers.explain.why_not import WhyNot
from planner.answers.sensitivity import Sensitivity
from planner.plan.plan import Plan
from planner.store.records import PlanText
from planner.strategy.fields import PINNABLE
from planner.strategy.text import parse_assignments
from profiles.document import canonical_json

router = APIRouter(prefix="/v1/plans/{plan}", tags=["plans"])
MOST_CHANGES = 8
MAY_SEARCH = frozenset({"why_not"})
"""Views for which a plan with other pins may have to be found."""


@router.get(
    "/explanation",
    summary="Why this plan, and why not another",
    response_model=Explanation | WhyNot,
    responses=problems(404, 409),
)
async def get_explanation(
    request: Request,
    plan: PlanReference,
    caller: Reader,
    brief: Annotated[bool, Query(description="only what the plan says; no estimates of its neighbours")] = False,
    why_not: Annotated[str | None, Query(max_length=500, description="another choice, for example tp=4,pp=8")] = None,
) -> Response:
    """Sentences to read, causes and memory to look up, neighbours as the ledger; or the answer to a counterfactual."""
    if why_not is None:
        return await plan_view(request, plan, "explanation", {"brief": brief})
    pins = parse_assignments([why_not], "--why-not", PINNABLE)
    return await plan_view(request, plan, "why_not", {"pins": pins})


@router.get(
    "/timeline",
    summary="The simulated step, as a trace for Perfetto",
    response_model=dict[str, Any],
    responses=problems(404, 409),
)
async def get_timeline(request: Request, plan: PlanReference, caller: Reader) -> Response:
    """Chrome trace-event JSON: one process a pipeline rank."""
    return await plan_view(request, plan, "timeline", {})


@router.get(
    "/sensitivity",
    summary="How much the plan depends on numbers that may be wrong",
    response_model=Sensitivity,
    responses=problems(404, 409),
)
async def get_sensitivity(
    request: Request,
    plan: PlanReference,
    caller: Reader,
    changes: Annotated[
        list[float] | None, Query(description="fractions by which each input is off; -0.2, -0.1, 0.1, 0.2 if not given")
    ] = None,
    replan: Annotated[bool, Query(description="search again under each change; takes as long as searches do")] = False,
) -> Response:
    """Compute, links, memory and batch, up and down."""
    wanted = tuple(dict.fromkeys(changes or (-0.2, -0.1, 0.1, 0.2)))
    if len(wanted) > MOST_CHANGES:
        raise RequestRefused(f"{len(wanted)} changes", where="changes", hint=f"give at most {MOST_CHANGES}")
    return await plan_view(request, plan, "sensitivity", {"changes": wanted, "replan": replan})


@router.get(
    "/memory", summary="What fills each stage's memory", response_model=MemoryView, responses=problems(404, 409)
)
async def get_memory(request: Request, plan: PlanReference, caller: Reader) -> MemoryView:
    """Peak memory of the worst rank of every stage, itemised, against the limit."""
    store = service_of(request).store
    return memory_view(await to_thread.run_sync(store.get_plan, plan))


def memory_view(plan: Plan) -> MemoryView:
    """The memory of a plan's stages."""
    limit = plan.memory_limit_bytes
    stages = tuple(
        MemoryStage(
            stage=stage.stage,
            layers=stage.layers,
            peak_memory_bytes=stage.peak_memory_bytes.model_dump(),
            spare_bytes=limit - stage.peak_memory_bytes.total,
            recompute=stage.recompute.model_dump(mode="json"),
            offload=stage.offload.model_dump(mode="json"),
        )
        for stage in plan.stages
    )
    return MemoryView(
        plan_id=plan.plan_id,
        device_memory_bytes=plan.problem.cluster.pools[0].device.memory_bytes,
        limit_bytes=limit,
        fits_probability=plan.fits_probability,
        worst_stage=max(stages, key=lambda stage: stage.peak_memory_bytes["total"]).stage,
        stages=stages,
    )


async def plan_view(request: Request, plan: str, task: str, parameters: Mapping[str, Any]) -> Response:
    """The answer of a task of ``api.solving.tasks`` about a plan."""
    _, content = await computed_view(service_of(request), plan, task, parameters)
    return await sent_view(request, plan, content)


async def sent_view(request: Request, plan: str, content: bytes, *, vary: bool = False) -> Response:
    """A view with its tag; only what was asked by a plan's full id may be cached for ever."""
    caching, version = FOR_EVER if len(plan) == FULL_ID else REVALIDATE, content_tag(content)
    headers = {"ETag": etag(version), "Cache-Control": caching, **({"Vary": "Accept"} if vary else {})}
    known = not_modified(request, version, caching)
    return known or await large_response(request, content, headers, "application/json")


async def computed_view(service: Service, plan: str, task: str, parameters: Mapping[str, Any]) -> tuple[str, bytes]:
    """The view of a plan: remembered, being computed, or computed now.  Plans never change, so neither do views."""
    text = await to_thread.run_sync(service.store.plan_text, plan)
    return text.plan_id, await view_of(service, text, task, parameters)


async def view_of(service: Service, text: PlanText, task: str, parameters: Mapping[str, Any]) -> bytes:
    """The same of a plan's text."""
    wanted = canonical_json([text.plan_id, task, parameters])
    key = hashlib.sha256(wanted.encode()).hexdigest()
    known = service.views.get(key)
    if known is not None:
        return known
    limit_s = service.settings.quick_s
    # What may search waits with the searches: an estimate under somebody's hand never stands behind it.
    pool = service.searches if task in MAY_SEARCH or parameters.get("replan") else service.quick

    async def compute() -> bytes:
        return await pool.run(task, {**parameters, "plan": text.body}, limit_s)

    try:
        content, _ = await service.view_flights.share(key, compute)
    except TooLong:
        raise ServiceBusy(f"this takes longer than {limit_s:g} s", hint="ask for less of it") from None
    service.views.keep(key, content)
    return content
