"""Results of the store besides whole plans: small frozen records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Self

from planner.plan.plan import FINAL, PlanOutcome, PlanStatus, status_of


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the line of a plan says besides its columns; None where the version that wrote it did not know it."""

    strategy: Mapping[str, Any]
    global_batch_size: int | None = None
    sequence_length: int | None = None
    tokens_per_s_per_device: float | None = None
    model_flops_utilization: float | None = None
    peak_memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    fits_probability: float | None = None
    cost_per_step: float | None = None

    @classmethod
    def of(cls, body: str) -> Self:
        """Those of a plan's stored text, which is not validated again."""
        plan = json.loads(body)
        workload = plan["problem"]["workload"]
        parts = {part.name: plan.get(part.name, workload.get(part.name)) for part in fields(cls)}
        return cls(**{**parts, "strategy": plan["strategy"]})


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """One line of ``meshwright plans list``."""

    plan_id: str
    problem_id: str
    outcome: PlanOutcome
    step_time_s: float
    gap: float | None
    num_devices: int
    model_name: str
    cluster_name: str
    created_at: datetime
    labels: tuple[str, ...] = ()
    backend: str = ""
    release: str = ""
    facts: PlanFacts = field(default_factory=lambda: PlanFacts({}))

    @property
    def status(self) -> PlanStatus:
        """As in the plan's document."""
        return status_of(self.outcome)


@dataclass(frozen=True, slots=True)
class PlanText:
    """A stored plan as its canonical JSON: ``sha256(body) == plan_id``."""

    plan_id: str
    problem_id: str
    outcome: PlanOutcome
    body: str
    schema_version: int

    @property
    def is_final(self) -> bool:
        """Whether a new search of the same question could not better it."""
        return self.outcome in FINAL

    def answers(self, top_k: int) -> bool:
        """Whether it is proved and has runners-up where some are wanted.

        The plans of a curve have none; a plan that simply ran out of them has some, however many were asked for.
        """
        return self.is_final and (top_k == 0 or len(json.loads(self.body)["alternatives"]) > 0)


@dataclass(frozen=True, slots=True)
class RemovedPlan:
    """A plan that was removed, and how much went with it."""

    plan_id: str
    problem_id: str
    emissions: int
    label_versions: int
    requests: int


@dataclass(frozen=True, slots=True)
class LabelRecord:
    """One version of a label."""

    name: str
    version: int
    plan_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class EmissionRecord:
    """One written set of launch files."""

    emission_id: str
    plan_id: str
    backend: str
    launcher: str
    manifest: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NamedRecord:
    """One version of a document under a name; ``sha`` is the document's id."""

    name: str
    version: int
    sha: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ApiKeyRecord:
    """A key of the service, without its secret."""

    prefix: str
    secret_sha256: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """A request under a client's key; with no plan, job, problem or sweep it is still being answered."""

    owner: str
    key: str
    request_sha: str
    plan_id: str | None
    job_id: str | None
    problem: str | None
    created_at: datetime
    sweep_id: str | None = None

    @property
    def answered(self) -> bool:
        """Whether there is something to replay."""
        return any(each is not None for each in (self.plan_id, self.job_id, self.problem, self.sweep_id))


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """A sweep as it stands; ``question`` is canonical JSON.  ``cancelled_at``: when somebody wished its end."""

    sweep_id: str
    document_sha: str
    question: str
    owner: str
    created_at: datetime
    cancelled_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One question of a sweep; ``line`` is what the sweep says of it now, as canonical JSON."""

    position: int
    state: str
    line: str
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """Something that somebody did or tried, as it is put on record.

    ``phase``: begun (before it is done), ended (with the answer's status), refused (who it was could not be shown, or
    may not), done (a command on the database's own machine).  ``principal``: a key's prefix, a token's subject, a user.
    """

    phase: str
    request_id: str
    kind: str
    principal: str
    method: str
    route: str
    resource: str = ""
    client: str = ""
    status: int | None = None
    count: int = 1

    def with_resource(self, resource: str) -> AuditEvent:
        """The same about something else."""
        return replace(self, resource=resource)


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An event on record: its number and its moment, by the clock of the service that wrote it."""

    seq: int
    at: datetime
    event: AuditEvent
