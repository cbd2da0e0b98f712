"""``/v1/labels/{name}``: names of plans, with an ETag, so that two people do not move a label unseen by each other."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Path, Request, Response

from api.access.auth import Planner, Reader
from api.errors import PreconditionFailed
from api.http.conditional import REVALIDATE, demanded_version, etag, not_modified
from api.http.request_body import read_document
from api.routes.operations import add_operation, session_of
from api.service import service_of
from api.wire.questions import NAME_PATTERN
from planner.errors import Conflict
from planner.operations.labels import GET_LABEL, PUT_LABEL, LabelName, LabelQuestion, LabelRequest, LabelView

router = APIRouter(tags=["plans"])
Label = Annotated[str, Path(pattern=NAME_PATTERN)]


async def get_label(request: Request, name: Label, caller: Reader) -> Response:
    """Its tag is its version."""
    view = await to_thread.run_sync(GET_LABEL.work, session_of(service_of(request)), LabelName(name=name))
    return not_modified(request, str(view.version), REVALIDATE) or _shown(view)


async def put_label(request: Request, name: Label, caller: Planner) -> Response:
    """Whichever version is there is replaced, unless the request says which."""
    service = service_of(request)
    question = await read_document(request, LabelQuestion, service.settings.body_limit_bytes)
    asked = LabelRequest(name=name, plan=question.plan, replaces=_replaced(request))
    await service.audit.begin(request, caller)
    try:
        view = await to_thread.run_sync(PUT_LABEL.work, session_of(service), asked)
    except Conflict as error:
        if error.where != "If-Match":
            raise
        raise PreconditionFailed(error.what, where=error.where, hint=error.hint) from None
    return _shown(view)


def _shown(view: LabelView) -> Response:
    headers = {"ETag": etag(str(view.version)), "Cache-Control": REVALIDATE}
    return Response(view.model_dump_json(), media_type="application/json", headers=headers)


def _replaced(request: Request) -> int | None:
    """The version that the request replaces, 0 = none, None = whichever.  Raises PreconditionFailed."""
    if not {"if-match", "if-none-match"} & set(request.headers):
        return None
    version = demanded_version(request)
    if version is None:
        return 0
    if not (version.isascii() and version.isdigit()):
        raise PreconditionFailed("no version of a label has this tag", where="If-Match", hint="send the ETag of GET")
    return int(version)


add_operation(
    router, GET_LABEL, get_label, shown=LabelView, responses={304: {"description": "The client's copy is good"}}
)
add_operation(router, PUT_LABEL, put_label, shown=LabelView)
