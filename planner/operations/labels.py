"""Names for plans: a label moves, its history stays."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from planner.errors import NotFound
from planner.operations.operation import Operation, Session, Wire
from profiles.document import Document


class LabelVersion(Document):
    """Where a label pointed."""

    version: int
    plan_id: str
    created_at: datetime


class LabelView(Document):
    """A label: the plan it means now, and its history, newest first."""

    name: str
    plan_id: str
    version: int
    history: tuple[LabelVersion, ...]


class LabelQuestion(Document):
    """``PUT /v1/labels/{name}``: which plan the label means from now on."""

    plan: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")] = Field(
        description="id, unique prefix or label"
    )


class LabelName(Document):
    """A label."""

    name: str


class LabelRequest(LabelName):
    """A label and the plan that it is to mean; the store looks for the plan, and knows no files.

    ``replaces``: the version that this one replaces, 0 = the label is new, None = whichever.
    """

    plan: str
    replaces: int | None = Field(default=None, exclude=True)


class LabelsRequest(Document):
    """A page of labels."""

    limit: int = Field(default=50, ge=1, le=500)
    after: Annotated[str | None, Wire(max_length=64)] = Field(default=None, description="`next` of the page before")


class LabelSummary(Document):
    """What a label means now."""

    name: str
    plan_id: str
    version: int
    created_at: datetime


class LabelPage(Document):
    """A page of labels, by name."""

    labels: tuple[LabelSummary, ...]
    next: str | None = Field(default=None, description="give it as `after` for the next page; null = the last page")


class RemovedLabel(Document):
    """A label that is gone; its plans stay."""

    name: str
    versions: int


def _put(session: Session, asked: LabelRequest) -> LabelView:
    store = session.store()
    store.label_plan(asked.name, store.resolve(asked.plan), asked.replaces)
    return _get(session, asked)


def _get(session: Session, asked: LabelName) -> LabelView:
    history = session.store().label_history(asked.name)
    if not history:
        raise NotFound("there is no such label", where="name", hint="PUT points one at a plan")
    versions = tuple(
        LabelVersion(version=each.version, plan_id=each.plan_id, created_at=each.created_at) for each in history
    )
    return LabelView(name=asked.name, plan_id=versions[0].plan_id, version=versions[0].version, history=versions)


def _page(session: Session, asked: LabelsRequest) -> LabelPage:
    found = session.store().list_labels(limit=asked.limit + 1, after=asked.after)
    shown = found[: asked.limit]
    rows = (LabelSummary(name=e.name, plan_id=e.plan_id, version=e.version, created_at=e.created_at) for e in shown)
    return LabelPage(labels=tuple(rows), next=shown[-1].name if len(found) > asked.limit else None)


def _remove(session: Session, asked: LabelName) -> RemovedLabel:
    return RemovedLabel(name=asked.name, versions=session.store().remove_label(asked.name))


PUT_LABEL = Operation(
    name="put_label",
    summary="Point a label at a plan",
    description="The same plan again is no new version.  Only hexadecimal digits are no label: they mean a plan's id."
    "  If-Match with the ETag of GET, or If-None-Match: * for a new label, replaces only what was seen.",
    errors=(404, 409, 412),
    served="own",
    request=LabelRequest,
    answer=LabelView,
    work=_put,
    path="/v1/labels/{name}",
    method="PUT",
    scope="plan",
    body=LabelQuestion,
    example={"plan": "0123456789abcdef"},
    changes=True,
    command="plans label",
)
GET_LABEL = Operation(
    name="get_label",
    summary="Which plan a label means, and meant",
    description="Every version, newest first.",
    request=LabelName,
    answer=LabelView,
    work=_get,
    path="/v1/labels/{name}",
    errors=(404,),
    served="own",
)
LIST_LABELS = Operation(
    name="list_labels",
    summary="Labels and the plans that they mean now, by name",
    description="Pages are stable while labels come: each continues after the last name of the page before.",
    request=LabelsRequest,
    answer=LabelPage,
    work=_page,
    path="/v1/labels",
    errors=(),
    command="plans labels",
)
DELETE_LABEL = Operation(
    name="delete_label",
    summary="Remove a label with its history",
    description="Its plans stay.",
    request=LabelName,
    answer=RemovedLabel,
    work=_remove,
    path="/v1/labels/{name}",
    method="DELETE",
    scope="admin",
    errors=(404,),
    changes=True,
    command="plans unlabel",
)
