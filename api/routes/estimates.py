"""Without a search: numbers of one strategy, what is wrong with a question, and what bounds say of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Planner, Reader
from api.errors import ServiceBusy
from api.http.departures import while_connected
from api.http.document_check import checked_document
from api.http.openapi import problems, reads
from api.http.request_body import read_document, read_json
from api.planning.resolving import Resolver
from api.routes.operations import add_operation
from api.routes.plans import EXAMPLE
from api.service import service_of
from api.solving.task_runner import TooLong
from api.wire.problem_details import Finding, problem_details
from api.wire.questions import EstimateQuestion, Question
from api.wire.views import Estimate, ProblemCheck
from planner.answers.bounds import ProblemBounds
from planner.model.parameters import total_parameters
from planner.operations.estimate import ESTIMATE
from planner.question.problem import ANY, Problem
from profiles.document import canonical_json
from profiles.errors import MeshwrightError

router = APIRouter(tags=["questions"])


async def create_estimate(request: Request, caller: Planner) -> Response:
    """Computed once in a process of the pool, then remembered."""
    service = service_of(request)
    question = await read_document(request, EstimateQuestion, service.settings.body_limit_bytes)
    payload = await to_thread.run_sync(service.resolver.estimate_payload, question)
    return await _remembered(request, ESTIMATE.task, payload)


async def _remembered(request: Request, task: str, payload: dict[str, Any]) -> Response:
    """What a process of the pool answers; asked again, what it answered."""
    service = service_of(request)
    key = hashlib.sha256(f"{task} {canonical_json(payload)}".encode()).hexdigest()
    content = service.views.get(key)
    if content is None:
        try:
            content = await while_connected(request, service.quick.run(task, payload, service.settings.quick_s))
        except TooLong:
            raise ServiceBusy(f"the {task} takes too long", hint="ask for a smaller model or cluster") from None
        service.views.keep(key, content)
    return Response(content, media_type="application/json")


add_operation(
    router,
    ESTIMATE,
    create_estimate,
    shown=Estimate,
    reads_body=EstimateQuestion,
    example={**EXAMPLE, "strategy": {"tp": 2, "micro_batch_size": 1}},
)


@router.post(
    "/v1/problems:check",
    summary="What is wrong with a question?  All findings at once; nothing is searched or stored",
    response_model=ProblemCheck,
    responses=problems(body=True),
    openapi_extra=reads(Question, EXAMPLE),
)
async def check_problem(request: Request, caller: Reader) -> ProblemCheck:
    """200 with `ok: false` and the findings for a question that cannot be planned; 4xx for a body that is no JSON."""
    service = service_of(request)
    data = await read_json(request, service.settings.body_limit_bytes)
    return await to_thread.run_sync(lambda: checked(service.resolver, data))


@router.post(
    "/v1/problems:bound",
    summary="Can a question have a plan, and how fast can it be at most?  Bounds of whole families, no search",
    response_model=ProblemBounds,
    responses=problems(body=True),
    openapi_extra=reads(Question, EXAMPLE),
)
async def bound_problem(request: Request, caller: Planner) -> Response:
    """No plan is faster than `least_step_s`; with `may_fit: false` none fits.  The search finds how near one comes."""
    service = service_of(request)
    question = await read_document(request, Question, service.settings.body_limit_bytes)
    problem = await to_thread.run_sync(service.resolver.problem, question)
    return await _remembered(request, "bounds", problem.model_dump(mode="json"))


def checked(resolver: Resolver, data: Any) -> ProblemCheck:
    """Every finding that can be made without a search."""
    findings: list[Finding] = []

    def attempt(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except MeshwrightError as error:
            if error.http_status >= 500:
                raise
            found = problem_details(error)
            findings.extend(found.errors or (Finding(pointer="", detail=found.detail),))
            return None

    question = attempt(lambda: checked_document(Question, data))
    if question is None:
        return ProblemCheck(ok=False, findings=tuple(findings))
    attempt(lambda: resolver.model(question.model))
    attempt(lambda: resolver.cluster(question.cluster, question.devices))
    known = list(findings)
    # The parts together: constraints, objective, profile; what the parts alone said is not said again.
    problem: Problem | None = attempt(lambda: resolver.problem(question))
    findings = list(dict.fromkeys([*known, *findings]))
    if problem is not None:
        findings += _rules_of_backends(problem)
    if findings or problem is None:
        return ProblemCheck(ok=False, findings=tuple(findings))
    return ProblemCheck(
        ok=True,
        problem_id=problem.problem_id,
        num_devices=problem.cluster.num_devices,
        parameters=total_parameters(problem.model),
    )


def _rules_of_backends(problem: Problem) -> list[Finding]:
    """Why no back-end that is asked can run anything of the question; empty where one of them can."""
    from planner.backends.asked import asked_software
    from planner.search.backend_rules import why_none_there

    found = list[Finding]()
    named = problem.constraints.backends != (ANY,)
    for index, each in enumerate(asked_software(problem)):
        reasons = why_none_there(each, problem)
        if not reasons:
            return []
        pointer = f"/constraints/backends/{index}" if named else "/constraints/backends"
        found += [Finding(pointer=pointer, detail=f"{each.title}: {reason}") for reason in reasons]
    return found
