"""The error handlers of the application: every error becomes a problem+json response."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from api.http.document_check import findings_error
from api.http.head_requests import answers_head
from api.wire.problem_details import MEDIA_TYPE, Finding, ProblemDetails, plain_problem, problem_details
from profiles.errors import MeshwrightError

CLIENT_GONE = 499
"""Status of a request whose client left before the answer; never sent, only counted."""
RETRY_AFTER_S = 5
"""When the database or the service is away; what comes back in a second is answered in the next try."""


class AnswerRefused(Exception):  # in the user's words, like the tree
    """A computation in another process ended with this problem."""

    def __init__(self, problem: ProblemDetails, retry_after_s: int | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.retry_after_s = retry_after_s


def add_handlers(app: FastAPI) -> None:
    """Answer every known kind of error with problem+json."""
    app.add_exception_handler(MeshwrightError, _known)  # type: ignore[arg-type]  # Starlette wants Exception
    app.add_exception_handler(AnswerRefused, _refused)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _parameters)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _http)  # type: ignore[arg-type]
    app.add_exception_handler(ClientDisconnect, _gone)  # type: ignore[arg-type]


def problem_response(problem: ProblemDetails, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response for a problem."""
    content = problem.model_dump(mode="json", exclude_none=True, exclude_defaults=False)
    return JSONResponse(content, status_code=problem.status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def request_id_of(request: Request) -> str | None:
    """The id that the envelope gave this request."""
    found: str | None = getattr(request.state, "request_id", None)
    return found


async def _known(request: Request, error: MeshwrightError) -> JSONResponse:
    return problem_response(problem_details(error, request_id_of(request)), _headers(error))


async def _refused(request: Request, error: AnswerRefused) -> JSONResponse:
    problem = error.problem.model_copy(update={"request_id": request_id_of(request)})
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s is not None else {}
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.setdefault("Retry-After", str(RETRY_AFTER_S))
    return problem_response(problem, headers)


async def _gone(request: Request, error: ClientDisconnect) -> Response:
    """Nobody reads it; the log and the counters do."""
    return Response(status_code=CLIENT_GONE)


async def _parameters(request: Request, error: RequestValidationError) -> JSONResponse:
    """Bad path or query parameters and headers; the framework's own text would echo what was sent."""
    details: list[Any] = [{**each, "loc": each["loc"][1:] or each["loc"]} for each in error.errors()]
    problem = problem_details(findings_error(details), request_id_of(request))
    findings = [
        Finding(pointer=each.pointer.removeprefix("/"), detail=each.detail, hint=each.hint) for each in problem.errors
    ]
    return problem_response(problem.model_copy(update={"errors": tuple(findings)}))


async def _http(request: Request, error: HTTPException) -> JSONResponse:
    details = {
        404: "there is nothing at this path",
        405: "this path does not know that method; the Allow header names those that it knows",
    }
    detail = details.get(error.status_code, HTTPStatus(error.status_code).phrase)
    problem = plain_problem(error.status_code, detail, request_id_of(request))
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_methods(request))
    return problem_response(problem, headers)


def _methods(request: Request) -> list[str]:
    """Every method of a path; the framework names those of one route only."""
    found: set[str] = set()
    for route in request.app.state.api_routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            found |= set(getattr(route, "methods", None) or ())
    return sorted(found | ({"HEAD"} if "GET" in found and answers_head(request.url.path) else set()))


def _headers(error: MeshwrightError) -> dict[str, str]:
    retry_after_s = getattr(error, "retry_after_s", None)
    if retry_after_s is None and error.http_status == HTTPStatus.SERVICE_UNAVAILABLE:
        retry_after_s = RETRY_AFTER_S
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    challenge = getattr(error, "challenge", None)
    if challenge is not None:
        headers["WWW-Authenticate"] = challenge
    return headers
