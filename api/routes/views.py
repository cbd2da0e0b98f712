"""``/v1/plans/{plan}/...``: what can be said about a plan; computed once, then remembered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, get_args

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request, Response

from api.access.auth import Reader
from api.errors import RequestRefused, ServiceBusy
from api.http.archive import zip_of
from api.http.conditional import FOR_EVER, REVALIDATE, content_tag, etag, not_modified
from api.http.openapi import problems
from api.http.packing import large_response
from api.routes.launch_parameters import launch_settings
from api.routes.plans import FULL_ID, PlanReference
from api.service import Service, service_of
from api.solving.pool import TooLong
from api.wire.views import EmissionView, MemoryStage, MemoryView
from planner.backends.emission.emission import LauncherName
from planner.backends.launch.settings import LaunchSettings
from planner.backends.registry import TARGETS
from planner.explain.why import Explanation
from planner.explain.why_not import WhyNot
from planner.plan import Plan
from planner.sensitivity import Sensitivity
from planner.strategy_text import parse_assignments, pinnable_keys
from profiles.document import canonical_json

router = APIRouter(prefix="/v1/plans/{plan}", tags=["plans"])
MOST_CHANGES = 8
MAY_SEARCH = frozenset({"why_not", "emission"})
"""Views for which a plan with other pins, or inside a target's rules, may have to be found."""

BackEndName = StrEnum("BackEndName", {name.upper().replace("-", "_"): name for name in sorted(TARGETS)})  # type: ignore[misc]
Launcher = StrEnum("Launcher", {name.upper().replace("-", "_"): name for name in get_args(LauncherName)})  # type: ignore[misc]
Launcher.__doc__ = "Who starts the processes."
TORCHRUN = Launcher("torchrun")


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
    pins = parse_assignments([why_not], "--why-not", pinnable_keys())
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


@router.get(
    "/emissions/{target}",
    summary="Launch files of the plan for a target",
    response_model=EmissionView,
    responses={200: {"content": {"application/zip": {}}}, **problems(404, 409)},
)
async def get_emission(  # noqa: PLR0917  # a query parameter is an argument
    request: Request,
    plan: PlanReference,
    target: BackEndName,
    caller: Reader,
    settings: Annotated[LaunchSettings, Depends(launch_settings)],
    launcher: Launcher = TORCHRUN,
    version: Annotated[
        str | None, Query(pattern=r"^[0-9A-Za-z][0-9A-Za-z.]{0,31}$", description="a release of the target")
    ] = None,
    form: Annotated[
        Literal["json", "zip"] | None, Query(alias="format", description="as Accept: application/json or zip")
    ] = None,
) -> Response:
    """JSON with every file's text, or the folder as a zip: `format=zip`, or `Accept: application/zip`.

    What is said about the place where the job runs stands in the files; what is not, as marked places.
    """
    named = f"{target.value}=={version}" if version else str(target.value)
    service = service_of(request)
    wanted = {"target": named, "launcher": launcher.value, "settings": settings.to_dict()}
    plan_id, content = await computed_view(service, plan, "emission", wanted)
    if form == "json" or (form is None and "application/zip" not in request.headers.get("accept", "")):
        return await _sent(request, plan, content, vary=True)
    archive = await to_thread.run_sync(zip_of, json.loads(content))
    name = f"{plan_id[:12]}-{target.value}-{launcher.value}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Vary": "Accept"}
    return Response(archive, media_type="application/zip", headers=headers)


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
        worst_stage=max(stages, key=lambda stage: stage.peak_memory_bytes["total"]).stage,
        stages=stages,
    )


async def plan_view(request: Request, plan: str, task: str, parameters: Mapping[str, Any]) -> Response:
    """The answer of a task of ``api.solving.tasks`` about a plan."""
    _, content = await computed_view(service_of(request), plan, task, parameters)
    return await _sent(request, plan, content)


async def _sent(request: Request, plan: str, content: bytes, *, vary: bool = False) -> Response:
    caching, version = FOR_EVER if len(plan) == FULL_ID else REVALIDATE, content_tag(content)
    headers = {"ETag": etag(version), "Cache-Control": caching, **({"Vary": "Accept"} if vary else {})}
    known = not_modified(request, version, caching)
    return known or await large_response(request, content, headers, "application/json")


async def computed_view(service: Service, plan: str, task: str, parameters: Mapping[str, Any]) -> tuple[str, bytes]:
    """The view of a plan: remembered, being computed, or computed now.  Plans never change, so neither do views."""
    text = await to_thread.run_sync(service.store.plan_text, plan)
    wanted = canonical_json([text.plan_id, task, parameters])
    key = hashlib.sha256(wanted.encode()).hexdigest()
    known = service.views.get(key)
    if known is not None:
        return text.plan_id, known
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
    return text.plan_id, content
