"""``/v1/labels``: names for plans; a label moves, its history stays."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Path, Request

from api.access.auth import Planner, Reader
from api.http.openapi import problems, reads
from api.http.request_body import read_document
from api.service import service_of
from api.wire.questions import LabelQuestion
from api.wire.views import LabelVersion, LabelView
from planner.errors import NotFound
from planner.store.repository import Store

router = APIRouter(prefix="/v1/labels", tags=["plans"])
LabelName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


@router.put(
    "/{name}",
    summary="Point a label at a plan",
    responses=problems(404, 409, body=True),
    openapi_extra=reads(LabelQuestion, {"plan": "0123456789abcdef"}),
)
async def put_label(request: Request, name: LabelName, caller: Planner) -> LabelView:
    """The same plan again is no new version.  Only hexadecimal digits are no label: they mean a plan's id."""
    service = service_of(request)
    question = await read_document(request, LabelQuestion, service.settings.body_limit_bytes)
    await service.audit.begin(request, caller)
    await to_thread.run_sync(service.store.label_plan, name, question.plan)
    return await to_thread.run_sync(label_view, service.store, name)


@router.get("/{name}", summary="Which plan a label means, and meant", responses=problems(404))
async def get_label(request: Request, name: LabelName, caller: Reader) -> LabelView:
    """Every version, newest first."""
    return await to_thread.run_sync(label_view, service_of(request).store, name)


def label_view(store: Store, name: str) -> LabelView:
    """A label with its history.  Raises NotFound."""
    history = store.label_history(name)
    if not history:
        raise NotFound("there is no such label", where="name", hint="PUT points one at a plan")
    versions = tuple(
        LabelVersion(version=each.version, plan_id=each.plan_id, created_at=each.created_at) for each in history
    )
    return LabelView(name=name, plan_id=versions[0].plan_id, version=versions[0].version, history=versions)
