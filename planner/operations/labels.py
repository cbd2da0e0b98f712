"""Names for plans: a label moves, its history stays."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from planner.errors import NotFound
from planner.operations.operation import Operation, Session
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
    """A label and the plan that it is to mean; the store looks for the plan, and knows no files."""

    plan: str


def _put(session: Session, asked: LabelRequest) -> LabelView:
    store = session.store()
    store.label_plan(asked.name, store.resolve(asked.plan))
    return _get(session, asked)


def _get(session: Session, asked: LabelName) -> LabelView:
    history = session.store().label_history(asked.name)
    if not history:
        raise NotFound("there is no such label", where="name", hint="PUT points one at a plan")
    versions = tuple(
        LabelVersion(version=each.version, plan_id=each.plan_id, created_at=each.created_at) for each in history
    )
    return LabelView(name=asked.name, plan_id=versions[0].plan_id, version=versions[0].version, history=versions)


PUT_LABEL = Operation(
    name="put_label",
    summary="Point a label at a plan",
    description="The same plan again is no new version.  Only hexadecimal digits are no label: they mean a plan's id.",
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
)
