"""Plans that are stored: one, or a page of them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from planner.operations.operation import Operation, Session, Wire
from planner.operations.plan_reference import PlanRequest, is_plan_file
from planner.plan.plan import Plan, PlanOutcome, PlanStatus
from planner.store.records import PlanRecord
from profiles.document import Document

LARGEST_PAGE = 500
FULL_ID = r"^[0-9a-f]{64}$"


class PlansRequest(Document):
    """Which plans, and how many at a time."""

    model: Annotated[str | None, Wire(max_length=200)] = Field(default=None, description="only plans of this model")
    cluster: Annotated[str | None, Wire(max_length=200)] = Field(
        default=None, description="only plans for this cluster"
    )
    backend: Annotated[str | None, Wire(max_length=200)] = Field(
        default=None, description="only plans of this back-end"
    )
    problem_id: Annotated[str | None, Wire(pattern=FULL_ID)] = Field(default=None, description="only answers to this")
    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE)
    after: Annotated[str | None, Wire(pattern=FULL_ID)] = Field(default=None, description="`next` of the page before")


class PlanSummary(Document):
    """One line of a list of plans."""

    plan_id: str
    problem_id: str
    status: PlanStatus = Field(description="as in the plan")
    outcome: PlanOutcome = Field(
        description="recommended: a plan beside which another one is proved to be the fastest; else the status"
    )
    step_time_s: float
    gap: float | None = Field(description="null: an estimate, for which no bound is known")
    num_devices: int
    model: str
    cluster: str
    backend: str = Field(description="the software that runs it")
    release: str = Field(description="its release; empty = the default one")
    created_at: datetime
    labels: tuple[str, ...] = ()
    strategy: dict[str, Any] = Field(default_factory=dict, description="the fields that the plan gives")
    global_batch_size: int | None = None
    sequence_length: int | None = None
    tokens_per_s_per_device: float | None = None
    model_flops_utilization: float | None = None
    peak_memory_bytes: int | None = Field(default=None, description="of the fullest device")
    memory_limit_bytes: int | None = None
    fits_probability: float | None = Field(default=None, description="null: of a version that stated none")
    cost_per_step: float | None = Field(default=None, description="null: no price was said")


class PlanPage(Document):
    """A page of plans, newest first."""

    plans: tuple[PlanSummary, ...]
    next: str | None = Field(default=None, description="give it as `after` for the next page; null = the last page")


def _page(session: Session, asked: PlansRequest) -> PlanPage:
    records = session.store().list_plans(
        harmless(asked.model),
        harmless(asked.cluster),
        backend=harmless(asked.backend),
        problem_id=asked.problem_id,
        limit=asked.limit + 1,
        after=asked.after,
    )
    shown = records[: asked.limit]
    more = shown[-1].plan_id if len(records) > asked.limit else None
    return PlanPage(plans=tuple(_summary(record) for record in shown), next=more)


def harmless(text: str | None) -> str | None:
    """A text as the database may see it: U+0000 is no text there, and fits nothing."""
    return None if text is None else text.replace("\x00", "\N{REPLACEMENT CHARACTER}")


def _summary(record: PlanRecord) -> PlanSummary:
    return PlanSummary(
        plan_id=record.plan_id,
        problem_id=record.problem_id,
        status=record.status,
        outcome=record.outcome,
        step_time_s=record.step_time_s,
        gap=record.gap,
        num_devices=record.num_devices,
        model=record.model_name,
        cluster=record.cluster_name,
        backend=record.backend,
        release=record.release,
        created_at=record.created_at,
        labels=record.labels,
        **asdict(record.facts),
    )


class RemovedPlanView(Document):
    """A plan that is gone, and how much went with it."""

    plan_id: str
    problem_id: str
    emissions: int = Field(description="records of launch files that were written from it")
    label_versions: int = Field(description="places in the histories of labels that mean another plan by now")
    requests: int = Field(description="requests under a client's key that it answered: asked again, they plan anew")


def _remove(session: Session, asked: PlanRequest) -> RemovedPlanView:
    return RemovedPlanView(**asdict(session.store().remove_plan(asked.plan)))


LIST_PLANS = Operation(
    name="list_plans",
    summary="List stored plans, newest first",
    description="Pages are stable while plans arrive: each continues after the last plan of the page before.",
    request=PlansRequest,
    answer=PlanPage,
    work=_page,
    path="/v1/plans",
    command="plans list",
)
GET_PLAN = Operation(
    name="get_plan",
    summary="Read one plan",
    description="A full id may be cached for ever; what a label or a prefix means may change.",
    request=PlanRequest,
    answer=Plan,
    work=lambda session, asked: session.plan(asked.plan),
    path="/v1/plans/{plan}",
    served="own",
    reads_files=lambda asked: is_plan_file(asked.plan),
    command="plans show",
)
DELETE_PLAN = Operation(
    name="delete_plan",
    summary="Remove a stored plan, and what was kept only for it",
    description="Its question goes with its last plan.  409 while a label means it.  Other replicas may have it in"
    " memory.",
    request=PlanRequest,
    answer=RemovedPlanView,
    work=_remove,
    path="/v1/plans/{plan}",
    method="DELETE",
    scope="admin",
    served="own",
    changes=True,
    command="plans delete",
)
