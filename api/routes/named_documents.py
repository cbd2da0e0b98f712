"""Documents kept under a name: built-in names never change; stored ones are versioned.

A change says which version it replaces (If-Match), so that two people cannot overwrite each other unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import Path, Request, Response

from api.access.auth import Caller
from api.errors import PreconditionFailed
from api.http.conditional import REVALIDATE, demanded_version, etag, not_modified
from api.http.openapi import problems
from api.service import Service, service_of
from api.wire.questions import NAME_PATTERN
from planner.errors import Conflict, NotFound
from planner.operations.named import NamedView, RemovedName, unversioned
from profiles.document import Document

Kind = Literal["model", "cluster", "profile", "accuracy"]
StoredName = Annotated[str, Path(pattern=NAME_PATTERN)]
SHOWN: dict[int | str, dict[str, Any]] = {304: {"description": "The client's copy is good"}, **problems(404)}
STORED = problems(404, 409, 412, 428, body=True)
REMOVED = problems(404, 409, 412, 428)
"""The ``responses`` of an operation that shows a named document, of one that stores it, and of one that removes it."""
RESERVED = frozenset({"none", "auto"})


@dataclass(frozen=True, slots=True)
class Shelf:
    """One kind of named document: where they are listed, the built-in names and how one is read."""

    kind: Kind
    path: str
    builtin: Callable[[], tuple[str, ...]]
    load: Callable[[str], Document]


def expected_version(request: Request, shelf: Shelf, name: str) -> str | None:
    """The version that the change replaces.  Raises Conflict for a built-in name, PreconditionMissing."""
    if name.lower() in shelf.builtin() or name in RESERVED:
        raise Conflict(f"{name} is built in and never changes", where="name", hint="choose another name")
    return demanded_version(request)


async def put_document(  # who, where, what, instead of what
    request: Request, caller: Caller, shelf: Shelf, name: str, document: Document, expected: str | None
) -> Response:
    """Store the document, and show it.  Raises PreconditionFailed when ``expected`` is not what the name means now."""
    service = service_of(request)
    await service.audit.begin(request, caller)
    try:
        await to_thread.run_sync(lambda: service.records.put_named(shelf.kind, name, document, expected))
    except Conflict as error:
        raise PreconditionFailed(error.what, where=error.where, hint=error.hint) from None
    view = await to_thread.run_sync(_named, service, shelf, name)
    headers = {"ETag": etag(view.sha)}
    return Response(view.model_dump_json(), media_type="application/json", headers=headers)


async def remove_document(request: Request, caller: Caller, shelf: Shelf, name: str) -> Response:
    """Remove the name; plans of it stay.  Raises NotFound, Conflict, PreconditionMissing, PreconditionFailed."""
    service, expected = service_of(request), expected_version(request, shelf, name)
    await service.audit.begin(request, caller)
    try:
        count = await to_thread.run_sync(service.records.remove_named, shelf.kind, name, expected)
    except Conflict as error:
        raise PreconditionFailed(error.what, where=error.where, hint=error.hint) from None
    removed = RemovedName(name=name, versions=count)
    return Response(removed.model_dump_json(), media_type="application/json")


async def shown_document(request: Request, shelf: Shelf, name: str) -> Response:
    """The document under a name; its ETag is its id."""
    view = await to_thread.run_sync(_named, service_of(request), shelf, name)
    headers = {"ETag": etag(view.sha), "Cache-Control": REVALIDATE}
    return not_modified(request, view.sha, REVALIDATE) or Response(
        view.model_dump_json(), media_type="application/json", headers=headers
    )


def _named(service: Service, shelf: Shelf, name: str) -> NamedView:
    if name.lower() in shelf.builtin():
        return unversioned(name, shelf.load(name), builtin=True)
    found = service.records.named(shelf.kind, name)
    if found is None:
        raise NotFound(f"there is no stored {shelf.kind} {name!r}", where="name", hint=f"see GET {shelf.path}")
    record, data = found
    return NamedView(
        name=name,
        version=record.version,
        sha=record.sha,
        created_at=record.created_at,
        builtin=False,
        document=data,
    )
