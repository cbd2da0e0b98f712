"""``/v1/fleets``: the nodes of pools are shared between jobs."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Path, Request, Response

from api.access.auth import Planner, Reader
from api.answering.fleet import AskedFleet, fleet_answer, fleet_response
from api.answering.plan_response import wants_job
from api.http.conditional import FOR_EVER, not_modified
from api.http.departures import while_connected
from api.http.openapi import problems
from api.http.request_body import read_file
from api.jobs.board import FleetRequest
from api.planning.idempotency import checked_key
from api.planning.resolving import Resolver, checked_constraints, checked_workload
from api.routes.operations import add_operation
from api.routes.plans import HEADER_SPACE, PLANNED, IdempotencyKey, Prefer, keyed_request
from api.service import Service, service_of
from planner.answers.fleet.answer import Fleet
from planner.answers.fleet.nodes import fleet_nodes
from planner.answers.fleet.question import FleetJob, FleetPool, FleetQuestion
from planner.errors import DocumentInvalid, MeshwrightError
from planner.operations.fleet import FLEET, fleet_clusters, fleet_problems, with_former

router = APIRouter(tags=["elastic"])
FleetId = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="the whole id")]


async def create_fleet(
    request: Request,
    caller: Planner,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> Response:
    """The fleet, or the job that shares it; the body may be a fleet file as it is, sent as application/yaml."""
    service, key = service_of(request), checked_key(idempotency_key)
    question = await read_file(request, FleetQuestion, service.settings.body_limit_bytes)
    resolved = await to_thread.run_sync(fleet_request, service, question)
    keyed = None if key is None else keyed_request(service, caller, HEADER_SPACE + key, question)
    begin = partial(service.audit.begin, request, caller)
    asked = AskedFleet(caller, resolved, keyed, wants_job(prefer), begin)
    return await while_connected(request, fleet_answer(service, asked))


@router.get(
    "/v1/fleets/{fleet}",
    summary="A fleet that was shared, as it is stored",
    response_model=Fleet,
    responses={304: {"description": "The client's copy is good"}, **problems(404)},
)
async def get_fleet(request: Request, fleet: FleetId, caller: Reader) -> Response:
    """What `POST /v1/fleets` or its job answered: the address is in its `Location`, or `result_fleet_id` of the job."""
    return not_modified(request, fleet, FOR_EVER) or await fleet_response(service_of(request), fleet)


def fleet_request(service: Service, question: FleetQuestion) -> FleetRequest:
    """The question with documents for names; what is wrong with it is told now.  Raises NotFound, DocumentInvalid."""
    resolver = service.resolver
    asked = with_former(question, service.store.fleet_text).model_copy(
        update={
            "jobs": tuple(_job(resolver, job, f"/jobs/{at}") for at, job in enumerate(question.jobs)),
            "pools": tuple(_pool(resolver, pool, f"/pools/{at}") for at, pool in enumerate(question.pools)),
        }
    )
    pools = fleet_nodes(asked, fleet_clusters(asked))
    most, devices = resolver.settings.most_devices, sum(pool.num_nodes * pool.devices_per_node for pool in pools)
    if devices > most:
        raise DocumentInvalid(f"this service plans up to {most:,} devices", where="/pools", hint="name fewer nodes")
    asked_ids = {problem.problem_id for own in fleet_problems(asked, pools) for problem in own.values()}
    return FleetRequest(asked=asked, plans=_running(service, asked), problems=tuple(sorted(asked_ids)), devices=devices)


def _job(resolver: Resolver, job: FleetJob, where: str) -> FleetJob:
    try:
        changed: dict[str, Any] = {
            "model": resolver.model(job.model).model_dump(mode="json"),
            "workload": checked_workload(job.workload),
            "constraints": checked_constraints(job.constraints),
        }
    except MeshwrightError as error:
        error.what, error.where = f"job {job.name}: {error.what}", f"{where}{error.where or ''}"
        raise
    return job.model_copy(update=changed)


def _pool(resolver: Resolver, pool: FleetPool, where: str) -> FleetPool:
    try:
        cluster = resolver.cluster(pool.cluster, None).model_dump(mode="json")
    except MeshwrightError as error:
        error.what, error.where = f"pool {pool.name}: {error.what}", f"{where}/cluster"
        raise
    return pool.model_copy(update={"cluster": cluster})


def _running(service: Service, asked: FleetQuestion) -> dict[str, str]:
    """The plans that jobs run, by the names that the question calls them.  Raises NotFound."""
    names = {job.current.plan for job in asked.jobs if job.current is not None and job.current.plan is not None}
    return {name: service.store.plan_text(name).body for name in sorted(names)}


add_operation(router, FLEET, create_fleet, responses=PLANNED)
