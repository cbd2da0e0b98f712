"""``/v1/plans/{plan}/emissions``: launch files of a plan, or of the best plan in another back-end.

Reading plans nothing: files of another back-end are there once its plan is stored.  Sending the question plans there.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Literal, get_args

from anyio import to_thread
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from api.access.auth import Planner, Reader
from api.answering.plan_response import job_response
from api.answering.plan_there import Wanted, known_there, planned_there, wanted_files
from api.answering.views import sent_view, view_of
from api.http.archive import zip_of
from api.http.departures import while_connected
from api.http.openapi import problems
from api.http.request_body import read_document
from api.routes.launch_parameters import launch_settings, settings_of
from api.routes.operations import add_operation
from api.routes.plans import PlanReference
from api.service import Service, service_of
from api.wire.jobs import JobRecord
from api.wire.older_questions import spelled
from api.wire.questions import EmissionQuestion
from planner.backends.launch import LauncherName
from planner.backends.launch.settings import LaunchSettings
from planner.backends.registry import names_with_files
from planner.errors import NotFound
from planner.operations.emit import EMIT, EmissionView
from planner.question.problem import BACKEND_PATTERN
from planner.store.records import PlanText

router = APIRouter(prefix="/v1/plans/{plan}", tags=["plans"])
Launcher = StrEnum("Launcher", {name.upper().replace("-", "_"): name for name in get_args(LauncherName)})  # type: ignore[misc]
Launcher.__doc__ = "Who starts the processes."
TORCHRUN = Launcher("torchrun")

BackEndQuery = Annotated[
    str | None,
    Query(
        pattern=BACKEND_PATTERN,
        max_length=128,
        description="NAME or NAME==RELEASE; the plan's own if not given",
        examples=list(names_with_files()),
    ),
]
Form = Annotated[Literal["json", "zip"] | None, Query(alias="format", description="as Accept: application/json or zip")]
Settings = Annotated[LaunchSettings, Depends(launch_settings)]
OldTarget = Annotated[str | None, Query(pattern=BACKEND_PATTERN, max_length=128, include_in_schema=False)]
OldVersion = Annotated[str | None, Query(pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]{0,31}$", include_in_schema=False)]
FILES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/zip": {}}}, **problems(404, 409)}


@router.get("/emissions", summary="Launch files of the plan", response_model=EmissionView, responses=FILES)
async def get_emission(  # noqa: PLR0917  # a query parameter is an argument
    request: Request,
    plan: PlanReference,
    caller: Reader,
    settings: Settings,
    backend: BackEndQuery = None,
    launcher: Launcher = TORCHRUN,
    form: Form = None,
    target: OldTarget = None,
    version: OldVersion = None,
) -> Response:
    """JSON with every file's text, or the folder as a zip: `format=zip`, or `Accept: application/zip`.

    What is said about the place where the job runs stands in the files; what is not, as marked places.  Files of
    another back-end are of the same question's best plan there: 404 until a POST to this address has planned it.
    """
    return await _read(request, plan, spelled(backend or target, version), launcher, settings, form)


@router.get(
    "/emissions/{backend}",
    summary="The same, with the back-end in the path",
    response_model=EmissionView,
    responses=FILES,
    deprecated=True,
)
async def get_emission_of(  # noqa: PLR0917  # a query parameter is an argument
    request: Request,
    plan: PlanReference,
    backend: Annotated[str, Path(pattern=BACKEND_PATTERN, max_length=128)],
    caller: Reader,
    settings: Settings,
    launcher: Launcher = TORCHRUN,
    form: Form = None,
    version: OldVersion = None,
) -> Response:
    """As earlier releases had it."""
    return await _read(request, plan, spelled(backend, version), launcher, settings, form)


async def create_emission(request: Request, plan: PlanReference, caller: Planner) -> Response:
    """The files, or the job whose plan they will be of."""
    service = service_of(request)
    question = await read_document(request, EmissionQuestion, service.settings.body_limit_bytes)
    settings = settings_of(question)
    wanted = await to_thread.run_sync(wanted_files, service, plan, question.backend)
    found: PlanText | JobRecord = wanted.asked
    if wanted.there is not None:
        await service.audit.begin(request, caller)
        found = await planned_there(service, caller, wanted, wanted.there)
    if isinstance(found, JobRecord):
        return job_response(found)
    content = await _content(service, wanted, found, question.launcher, settings)
    return Response(content, media_type="application/json")


add_operation(
    router,
    EMIT,
    create_emission,
    reads_body=EmissionQuestion,
    responses={
        202: {"model": JobRecord, "description": "A job: the search in that back-end takes longer; ask again after it"}
    },
)


async def _read(  # the parts of one question
    request: Request,
    plan: str,
    backend: str | None,
    launcher: Launcher,
    settings: LaunchSettings,
    form: Literal["json", "zip"] | None,
) -> Response:
    service = service_of(request)
    wanted = await to_thread.run_sync(wanted_files, service, plan, backend)
    found: PlanText | None = wanted.asked
    if wanted.there is not None:
        found = await to_thread.run_sync(known_there, service, wanted.there)
    if found is None:
        raise NotFound(
            f"the question of this plan is not planned for {wanted.software.title} yet",
            where="backend",
            hint="POST to /v1/plans/{plan}/emissions plans it there and answers with the files",
        )
    content = await while_connected(request, _content(service, wanted, found, launcher.value, settings))
    if form == "json" or (form is None and "application/zip" not in request.headers.get("accept", "")):
        # What is stored for another back-end may become a better plan; a plan's own files stay.
        return await sent_view(request, plan if wanted.there is None else "", content, vary=True)
    archive = await to_thread.run_sync(zip_of, json.loads(content))
    name = f"{found.plan_id[:12]}-{wanted.software.name}-{launcher.value}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Vary": "Accept"}
    return Response(archive, media_type="application/zip", headers=headers)


async def _content(service: Service, wanted: Wanted, found: PlanText, launcher: str, settings: LaunchSettings) -> bytes:
    """The files of ``found``, and its difference from the plan that was asked about."""
    parameters: dict[str, Any] = {"launcher": launcher, "settings": settings.to_dict()}
    if wanted.there is not None:
        parameters["asked"] = wanted.asked.body
    return await view_of(service, found, "emission", parameters)
