"""Wire documents of answers that are no documents of the planner."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field, create_model

from api.wire.jobs import JobRecord
from api.wire.problem_details import Finding, ProblemDetails
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Problem
from profiles.document import Document

_plan_fields: Any = {name: (field.annotation, field) for name, field in Plan.model_fields.items()}
_short_fields: Any = {name: field for name, field in _plan_fields.items() if name != "problem"}
PlanAnswer: Any = create_model(
    "PlanAnswer",
    __base__=Document,
    __doc__="A stored plan: its ids, then the document itself.",
    plan_id=(str, Field(description="SHA-256 of the document's canonical JSON")),
    problem_id=(str, Field(description="SHA-256 of the problem's canonical JSON")),
    upgraded_from=(
        int | None,
        Field(
            default=None,
            description="schema_version of the stored text, where that is of an earlier form: its ids are of that text",
        ),
    ),
    **_plan_fields,
)
EstimatedPlan: Any = create_model(
    "EstimatedPlan",
    __base__=Document,
    __doc__="A plan document without its problem; its status may be infeasible.",
    **_short_fields,
)


class JobPage(Document):
    """A page of jobs, newest first."""

    jobs: tuple[JobRecord, ...]
    next: str | None = Field(default=None, description="give it as `before` for the next page; null = the last page")


class Estimate(Document):
    """The numbers of one strategy."""

    fits: bool
    missing_bytes: int = Field(description="what the worst device lacks; 0 = it fits, or another limit is broken")
    filled_in: tuple[str, ...] = Field(description="strategy fields that were left out, as they were filled in")
    plan: EstimatedPlan
    problem: Problem | None = Field(default=None, description="what was estimated, with every name resolved")


class ReadStrategy(Document):
    """What a typed or pasted configuration says."""

    kind: Literal["assignments", "megatron_script"]
    strategy: dict[str, int | str | bool] = Field(description="fields that are given, by their full names")
    pins: str = Field(description="the same as `why_not` of an explanation takes it")
    workload: dict[str, Any] = Field(default_factory=dict, description="workload fields that a script gives")
    num_devices: int | None = Field(default=None, description="nodes times processes a node, where a script says both")
    model: ModelSpec | None = Field(default=None, description="the model that a script describes")
    skipped: tuple[str, ...] = Field(default=(), description="arguments that a script adds on a condition: not used")


class ProblemCheck(Document):
    """Whether a question can be planned, with every finding."""

    ok: bool
    problem_id: str | None = None
    num_devices: int | None = None
    parameters: int | None = None
    findings: tuple[Finding, ...] = ()


class RequestView(Document):
    """A scheduler's own request: what became of it."""

    request_id: str
    state: Literal["answering", "answered", "queued", "running", "failed", "cancelled"]
    plan_id: str | None = None
    job_id: str | None = None
    problem: ProblemDetails | None = None
    created_at: datetime


AuditPhase = Literal["begun", "ended", "refused", "done"]


class AuditEntry(Document):
    """One thing that somebody did or tried."""

    seq: int = Field(description="its number; a hole shows that entries were removed or a write was rolled back")
    at: datetime
    phase: AuditPhase = Field(
        description="begun: before it is done; ended: its answer; refused: 401 or 403; done: by a command on the host"
    )
    request_id: str = Field(description="as in logs and in the X-Request-Id header")
    kind: Literal["local", "key", "token", "command", "unknown"] = Field(description="how it is known who it was")
    principal: str = Field(description="a key's prefix, a token's subject, a user of the host; claimed only if unknown")
    client: str = Field(description="address of the connection; behind a proxy, the proxy's")
    method: str
    route: str
    resource: str = Field(description="what it was done to; of an answer with a Location, that")
    status: int | None = Field(default=None, description="HTTP status of the answer")
    count: int = Field(default=1, ge=1, description="refusals that this entry stands for, when they come too fast")


class AuditPage(Document):
    """A page of the audit trail, newest first."""

    events: tuple[AuditEntry, ...]
    next: int | None = Field(default=None, description="give it as `before` for the next page; null = the last page")


class Health(Document):
    """Whether the service can work."""

    status: Literal["ok", "unavailable"]
    checks: dict[str, str] = Field(default_factory=dict)


class Version(Document):
    """Which software answers."""

    version: str
    software_signature: str = Field(description="plans are found again only under the same signature")
    schema_revision: str
