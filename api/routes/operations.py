"""Routes of the operations that ``planner.operations`` declares: path, parameters, documents, words, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, Signature
from operator import getitem
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.datastructures import Default
from fastapi.responses import JSONResponse

from api.access.auth import Admin, Planner, Reader
from api.answering.views import sent_view, view_of
from api.errors import RequestRefused
from api.http.departures import while_connected
from api.http.document_check import checked_document
from api.http.openapi import problems, reads
from api.http.request_body import read_document
from api.service import Service, service_of
from api.wire.questions import NAME_PATTERN
from planner.operations.operation import Operation, Session, Wire
from planner.operations.registry import OPERATIONS
from profiles.document import Document

WHO: dict[str, Any] = {"read": Reader, "plan": Planner, "admin": Admin}
HTML: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {}}}}


def operation_router() -> APIRouter:
    """Routes of all operations but those that have routes of their own."""
    router = APIRouter()
    for operation in OPERATIONS:
        if operation.served != "own":
            add_operation(router, operation, _endpoint(operation))
    return router


def add_operation(
    router: APIRouter,
    operation: Operation[Any, Any],
    endpoint: Callable[..., Any],
    *,
    shown: Any = None,
    status: int | None = None,
    reads_body: type[Document] | None = None,
    responses: dict[int | str, dict[str, Any]] | None = None,
    example: Mapping[str, Any] | None = None,
) -> None:
    """The route of an operation.  ``shown``, ``reads_body``: its answer and body over the wire, if they differ.

    ``status``: of its answer, if not 200.
    """
    body = reads_body or operation.body
    is_page = operation.answer is str
    router.add_api_route(
        operation.path.removeprefix(router.prefix),
        endpoint,
        methods=[operation.method],
        name=operation.name,
        summary=operation.summary,
        description=operation.description,
        tags=[each for each in (operation.tag,) if each not in router.tags],
        status_code=status,
        response_model=None if is_page else shown or operation.answer,
        responses={
            **(HTML if is_page else {}),
            **(responses or {}),
            **problems(*operation.errors, body=body is not None),
        },
        openapi_extra=None if body is None else reads(body, dict(example or operation.example)),
        response_class=Response if is_page else Default(JSONResponse),
    )


def _endpoint(operation: Operation[Any, Any]) -> Callable[..., Any]:
    """What answers requests for an operation; its signature is the operation's request."""

    async def endpoint(request: Request, caller: Any, **said: Any) -> Any:
        service = service_of(request)
        if operation.body is not None:
            body = await read_document(request, operation.body, service.settings.body_limit_bytes)
            said |= {name: getattr(body, name) for name in operation.body.model_fields}
        asked = checked_document(operation.request, said)
        _check_counts(operation, asked)
        if operation.served == "view":
            return await _view(request, service, operation, asked)
        if operation.changes:
            await service.audit.begin(request, caller)
        return await to_thread.run_sync(operation.work, session_of(service), asked)

    parameters = [
        Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request),
        Parameter("caller", Parameter.KEYWORD_ONLY, annotation=WHO[operation.scope]),
        *_parameters(operation),
    ]
    endpoint.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    endpoint.__name__ = operation.name
    return endpoint


def session_of(service: Service) -> Session:
    """Where work is done that needs no process of its own: on the service's own store."""
    return Session(service.store.get_plan, lambda: service.store, service.resolver.stored)


def _parameters(operation: Operation[Any, Any]) -> Iterator[Parameter]:
    """The parts of the request that are no part of a body, as FastAPI takes them."""
    for name, part in operation.request.model_fields.items():
        if operation.body is not None and name in operation.body.model_fields:
            continue
        limits = [each for each in part.metadata if isinstance(each, Wire)]
        plain = [each for each in part.metadata if not isinstance(each, Wire)]
        if name in operation.path_parts:
            where: Any = Path(pattern=NAME_PATTERN, description=part.description)
        else:
            said = {key: value for each in limits for key, value in each.given().items()}
            where = Query(description=part.description, **said)
        default = Parameter.empty if part.is_required() else part.default
        kind = getitem(Annotated, (part.annotation, *plain, where))
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


async def _view(request: Request, service: Service, operation: Operation[Any, Any], asked: Any) -> Response:
    text = await to_thread.run_sync(service.store.plan_text, asked.plan)
    parameters = asked.model_dump(mode="json", exclude={"plan"})
    view = view_of(service, text, operation.task, parameters, searches=operation.searches(asked))
    content = await while_connected(request, view)
    if operation.answer is str:
        headers = {"Content-Disposition": f'attachment; filename="plan-{text.plan_id[:12]}.html"'}
        return Response(content, media_type="text/html", headers=headers)
    return await sent_view(request, asked.plan, content)


def _check_counts(operation: Operation[Any, Any], asked: Document) -> None:
    """Refuse more values of a part than a service takes.  Raises RequestRefused."""
    for name, most in operation.most.items():
        count = len(dict.fromkeys(getattr(asked, name) or ()))
        if count > most:
            raise RequestRefused(f"{count} {name}", where=name, hint=f"give at most {most}")
