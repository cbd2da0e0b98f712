"""The tables of the database.

    documents   every model, cluster, workload, constraints, objective, plan and shared fleet, once, under its SHA-256
    problems    which documents make up a question
    plans       answers, immutable, with the columns that lists filter by
    searches    which software found which plan for which problem, and how long that took
    labels      names for plans, versioned: a label moves, its history stays
    emissions   what was written for which back-end
    named_documents   models, clusters and profiles under names of their own, versioned like labels
    api_keys          who may ask the service: hashes, scopes, expiry
    idempotency_keys  requests that a client may repeat, and what they were answered
    sweeps            many questions asked as one, and when they ended
    sweep_cells       one question of a sweep: how far it is, and its line of the answer
    audit_events      who changed what, or tried to; rows are added and, when old, removed, never changed

Rows of ``documents``, ``problems``, ``plans`` and ``emissions`` are content-addressed and never change.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    DDL,
    BigInteger,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    TypeDecorator,
    event,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
"""Every constraint has a name, so that migrations can address it on both databases."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment: aware in Python, ``timestamptz`` in PostgreSQL, ISO text in UTC in SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store UTC; SQLite has no time zones, so the zone is dropped there."""
        if value is None:
            return None
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give UTC back."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# "C" sorts by bytes whatever the server's locale, so that a prefix search can use the index.
Sha = String(64).with_variant(String(64, collation="C"), "postgresql")


class Base(DeclarativeBase):
    """Root of the mapped classes."""

    metadata = MetaData(naming_convention=NAMING)
    # Spelt out, because releases of SQLAlchemy differ in what a float means.
    type_annotation_map: ClassVar[dict[Any, Any]] = {float: Double}


class DocumentRow(Base):
    """One document, canonical JSON: ``sha256(body) == sha``."""

    __tablename__ = "documents"

    sha: Mapped[str] = mapped_column(Sha, primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    schema_version: Mapped[int]
    body: Mapped[str] = mapped_column(Text)


class ProblemRow(Base):
    """A question, as references to its documents."""

    __tablename__ = "problems"

    problem_id: Mapped[str] = mapped_column(Sha, primary_key=True)
    model_sha: Mapped[str] = mapped_column(Sha, ForeignKey("documents.sha"))
    cluster_sha: Mapped[str] = mapped_column(Sha, ForeignKey("documents.sha"))
    workload_sha: Mapped[str] = mapped_column(Sha, ForeignKey("documents.sha"))
    constraints_sha: Mapped[str] = mapped_column(Sha, ForeignKey("documents.sha"))
    objective_sha: Mapped[str] = mapped_column(Sha, ForeignKey("documents.sha"))
    profile_id: Mapped[str | None] = mapped_column(Sha)


class PlanRow(Base):
    """An answer.  Its whole body is the document of the same id."""

    __tablename__ = "plans"
    __table_args__ = (
        Index(None, "created_at", "plan_id"),
        Index(None, "model_name", "created_at"),
        Index(None, "cluster_name", "created_at"),
        Index(None, "backend", "created_at"),
    )

    plan_id: Mapped[str] = mapped_column(Sha, ForeignKey("documents.sha"), primary_key=True)
    problem_id: Mapped[str] = mapped_column(Sha, ForeignKey("problems.problem_id"), index=True)
    # ``Plan.outcome``; the column is older than that word.
    status: Mapped[str] = mapped_column(String(16))
    step_time_s: Mapped[float]
    # 0 where no bound is known: of a feasible plan that is nothing else.
    gap: Mapped[float]
    num_devices: Mapped[int]
    model_name: Mapped[str] = mapped_column(Text)
    cluster_name: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    backend: Mapped[str | None] = mapped_column(Text)
    release: Mapped[str | None] = mapped_column(Text)


class SearchRow(Base):
    """Which software found this plan for which problem: what ``find_plan`` asks."""

    __tablename__ = "searches"
    __table_args__ = (Index(None, "problem_id", "software_signature"),)

    plan_id: Mapped[str] = mapped_column(Sha, ForeignKey("plans.plan_id"), primary_key=True)
    software_signature: Mapped[str] = mapped_column(String(64), primary_key=True)
    problem_id: Mapped[str] = mapped_column(Sha, ForeignKey("problems.problem_id"))
    wall_s: Mapped[float]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class LabelRow(Base):
    """One version of a label; the highest version is where the label points now."""

    __tablename__ = "labels"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    plan_id: Mapped[str] = mapped_column(Sha, ForeignKey("plans.plan_id"), index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class EmissionRow(Base):
    """One written set of launch files: its manifest, canonical JSON."""

    __tablename__ = "emissions"

    emission_id: Mapped[str] = mapped_column(Sha, primary_key=True)
    plan_id: Mapped[str] = mapped_column(Sha, ForeignKey("plans.plan_id"), index=True)
    # The column has the word of the release that made it.
    backend: Mapped[str] = mapped_column("target", String(32))
    launcher: Mapped[str] = mapped_column(String(32))
    manifest: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class NamedDocumentRow(Base):
    """One version of a document under a name; the highest version is what the name means now."""

    __tablename__ = "named_documents"

    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    sha: Mapped[str] = mapped_column(Sha, ForeignKey("documents.sha"))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class ApiKeyRow(Base):
    """A key of the service.  The secret itself is nowhere; ``scopes`` is a comma-separated list."""

    __tablename__ = "api_keys"

    prefix: Mapped[str] = mapped_column(String(16), primary_key=True)
    secret_sha256: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class IdempotencyKeyRow(Base):
    """A request under a client's own key: its content, and what it was answered once it is.

    No plan, job, problem, sweep or fleet: it is still being answered.  Jobs live elsewhere: no foreign keys.
    """

    __tablename__ = "idempotency_keys"
    __table_args__ = (Index(None, "created_at"),)

    owner: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    request_sha: Mapped[str] = mapped_column(String(64))
    plan_id: Mapped[str | None] = mapped_column(Sha)
    job_id: Mapped[str | None] = mapped_column(String(64))
    problem: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    sweep_id: Mapped[str | None] = mapped_column(Sha)
    fleet_id: Mapped[str | None] = mapped_column(Sha)


class SweepRow(Base):
    """Many questions asked as one.

    ``question``: its axes, canonical JSON; the document says what their names meant.  ``cancelled_at``: when somebody
    wished its end.
    """

    __tablename__ = "sweeps"
    __table_args__ = (Index(None, "created_at", "sweep_id"), Index(None, "ended_at"))

    sweep_id: Mapped[str] = mapped_column(Sha, primary_key=True)
    document_sha: Mapped[str] = mapped_column(Sha, ForeignKey("documents.sha"))
    question: Mapped[str] = mapped_column(Text)
    owner: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    cancelled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class SweepCellRow(Base):
    """One question of a sweep.  ``line``: what the sweep says of it now, canonical JSON."""

    __tablename__ = "sweep_cells"

    sweep_id: Mapped[str] = mapped_column(Sha, ForeignKey("sweeps.sweep_id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(String(16))
    job_id: Mapped[str | None] = mapped_column(String(64), index=True)
    line: Mapped[str] = mapped_column(Text)


class AuditRow(Base):
    """One thing that somebody did or tried: before it is done (begun), its answer (ended), or a refusal (refused).

    ``count``: how many like it this row stands for.  Numbers are never used twice, so a hole shows that rows are gone.
    """

    __tablename__ = "audit_events"
    __table_args__ = (Index(None, "at"), Index(None, "principal", "seq"), {"sqlite_autoincrement": True})

    seq: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    phase: Mapped[str] = mapped_column(String(16))
    request_id: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(16))
    principal: Mapped[str] = mapped_column(String(255))
    client: Mapped[str] = mapped_column(String(64))
    method: Mapped[str] = mapped_column(String(16))
    route: Mapped[str] = mapped_column(String(128))
    resource: Mapped[str] = mapped_column(String(255))
    status: Mapped[int | None]
    count: Mapped[int]


# The database itself refuses to change a row, whoever asks.
for _dialect, _statements in {
    "sqlite": (
        "CREATE TRIGGER audit_events_unchanged BEFORE UPDATE ON audit_events "
        "BEGIN SELECT RAISE(ABORT, 'audit_events is append-only'); END",
    ),
    "postgresql": (
        "CREATE FUNCTION audit_events_unchanged() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RAISE EXCEPTION ''audit_events is append-only''; END'",
        "CREATE TRIGGER audit_events_unchanged BEFORE UPDATE ON audit_events "
        "FOR EACH ROW EXECUTE FUNCTION audit_events_unchanged()",
    ),
}.items():
    for _statement in _statements:
        event.listen(AuditRow.__table__, "after_create", DDL(_statement).execute_if(dialect=_dialect))  # type: ignore[no-untyped-call]
