"""The ``Store``, all that can be asked of the database: save, find, get, list, label, record emissions.

Each method is one transaction.  Safe to share between threads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Engine

from planner.plan.plan import Plan
from planner.store import finding, removal, saving
from planner.store.audit import AuditTrail
from planner.store.engine import make_engine, reading, shown, writing
from planner.store.records import EmissionRecord, LabelRecord, PlanRecord, PlanText, RemovedPlan
from planner.store.retention import Retention
from planner.store.schema import ensure_schema
from planner.store.service import ServiceStore
from planner.store.signature import software_signature
from planner.store.sweeps import SweepStore
from profiles.errors import DocumentInvalid

MAX_PAGE = 1000
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEX = re.compile(r"[0-9a-fA-F]+")


class Store:
    """Plans, immutable and content-addressed, with labels and emissions."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._engine = engine
        self._clock = clock

    @classmethod
    def open(cls, url: str) -> Self:
        """Connect and make the schema ready.  Users call ``planner.store.open_store``."""
        engine = make_engine(url)
        try:
            ensure_schema(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @property
    def address(self) -> str:
        """The database's path or URL, without a password."""
        return shown(self._engine)

    def service(self) -> ServiceStore:
        """The tables of the service, on the same connections."""
        return ServiceStore(self._engine, self._clock)

    def retention(self) -> Retention:
        """What removes old rows of the service, on the same connections."""
        return Retention(self._engine)

    def sweeps(self) -> SweepStore:
        """Many questions asked as one, on the same connections."""
        return SweepStore(self._engine, self._clock)

    def audit(self) -> AuditTrail:
        """Who changed what, on the same connections."""
        return AuditTrail(self._engine, self._clock)

    def save_plan(self, plan: Plan, wall_s: float | None = None, *, signature: str | None = None) -> str:
        """Store a plan and return its id.  Storing it again changes nothing.

        ``wall_s``: how long the search took; None = the plan is no search's answer (an estimate), so ``find_plan``
        never returns it.  ``signature``: the software that found it, by default this one.
        Raises DocumentInvalid for a plan that does not fit, Conflict when the id has another body.
        """
        if plan.status == "infeasible":
            raise DocumentInvalid(
                "a plan that does not fit is never stored", where="/status", hint="choose a strategy that fits"
            )
        if wall_s is not None and not (math.isfinite(wall_s) and wall_s >= 0):
            raise DocumentInvalid(f"a search cannot have taken {wall_s} s", where="wall_s")
        now = self._clock()
        with writing(self._engine) as connection:
            plan_id = saving.insert_plan(connection, plan, now)
            if wall_s is not None:
                software = signature or software_signature()
                saving.insert_search(connection, plan_id, plan.problem.problem_id, software, wall_s, now)
        return plan_id

    def find_plan(self, problem_id: str, signature: str | None = None) -> Plan | None:
        """The best stored answer to exactly this problem by exactly this software, or None.

        The problem's id covers model, cluster, workload, constraints, objective and profile, the signature covers
        the sources; so nothing stale can come back.  A plan that is not proved (``status`` "feasible") may have been
        cut by a time limit: whether it is good enough is the caller's decision.
        """
        with reading(self._engine) as connection:
            plan_id = finding.find_answer(connection, problem_id, signature or software_signature())
            return None if plan_id is None else finding.read_plan(connection, plan_id)

    def find_answer(self, problem_id: str, signature: str | None = None) -> PlanText | None:
        """The same as text, without building the plan: what a service hands on."""
        with reading(self._engine) as connection:
            plan_id = finding.find_answer(connection, problem_id, signature or software_signature())
            return None if plan_id is None else finding.read_text(connection, plan_id)

    def find_search(self, problem_id: str, signature: str | None = None) -> tuple[PlanText, float] | None:
        """The best stored answer, and the seconds of the longest search that looked for one; None without answer."""
        software = signature or software_signature()
        with reading(self._engine) as connection:
            plan_id = finding.find_answer(connection, problem_id, software)
            if plan_id is None:
                return None
            longest_s = finding.longest_search_s(connection, problem_id, software)
            return finding.read_text(connection, plan_id), longest_s

    def plan_text(self, reference: str) -> PlanText:
        """The text of an id, a unique prefix or a label.  Raises NotFound, AmbiguousPlan."""
        with reading(self._engine) as connection:
            return finding.read_text(connection, finding.resolve(connection, reference))

    def get_plan(self, reference: str) -> Plan:
        """The plan of an id, a unique prefix (four digits or more) or a label.  Raises NotFound, AmbiguousPlan."""
        with reading(self._engine) as connection:
            return finding.read_plan(connection, finding.resolve(connection, reference))

    def resolve(self, reference: str) -> str:
        """The full id meant by an id, a unique prefix or a label.  Raises NotFound, AmbiguousPlan."""
        with reading(self._engine) as connection:
            return finding.resolve(connection, reference)

    def list_plans(
        self,
        model: str | None = None,
        cluster: str | None = None,
        *,
        backend: str | None = None,
        problem_id: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[PlanRecord, ...]:
        """Stored plans, newest first.  ``after``: the last id of the page before; pages stay stable under inserts."""
        if not 1 <= limit <= MAX_PAGE:
            raise DocumentInvalid(f"a page has 1 to {MAX_PAGE} plans, not {limit}", where="--limit")
        with reading(self._engine) as connection:
            last = None if after is None else finding.resolve(connection, after)
            return finding.list_plans(
                connection, model, cluster, backend=backend, problem_id=problem_id, limit=limit, after=last
            )

    def remove_plan(self, reference: str) -> RemovedPlan:
        """Remove a plan and what was kept only for it.  Raises NotFound, AmbiguousPlan, Conflict (a label means it)."""
        with writing(self._engine) as connection:
            return removal.remove_plan(connection, reference)

    def remove_label(self, name: str) -> int:
        """Remove a label with its history; how many versions it had.  Raises NotFound."""
        with writing(self._engine) as connection:
            return removal.remove_label(connection, name)

    def list_labels(self, *, limit: int = 50, after: str | None = None) -> tuple[LabelRecord, ...]:
        """What every label means now, by name."""
        with reading(self._engine) as connection:
            return finding.list_labels(connection, limit, after)

    def label_plan(self, name: str, reference: str, expected: int | None = None) -> int:
        """Point a label at a plan; returns the label's version, 1 for a new label.  Its history stays.

        ``expected``: the version that is replaced, 0 = none, None = whichever.  Raises Conflict.
        """
        if not _LABEL.fullmatch(name) or _HEX.fullmatch(name):
            raise DocumentInvalid(
                f"{name!r} cannot be a label",
                where="--label",
                hint="letters, digits, '.', '_', '-', at most 64; not only hexadecimal digits, which mean a plan id",
            )
        with writing(self._engine) as connection:
            plan_id = finding.resolve(connection, reference)
            return saving.insert_label(connection, name, plan_id, self._clock(), expected)

    def label_history(self, name: str) -> tuple[LabelRecord, ...]:
        """Every version of a label, newest first; empty for an unknown one."""
        with reading(self._engine) as connection:
            return finding.label_history(connection, name)

    def save_emission(self, reference: str, backend: str, launcher: str, manifest: Mapping[str, Any]) -> str:
        """Record launch files that were written from a stored plan; returns the emission's id.  Again = no change."""
        with writing(self._engine) as connection:
            plan_id = finding.resolve(connection, reference)
            return saving.insert_emission(connection, plan_id, backend, launcher, manifest, self._clock())

    def list_emissions(self, reference: str) -> tuple[EmissionRecord, ...]:
        """Everything that was written from a plan, newest first."""
        with reading(self._engine) as connection:
            return finding.list_emissions(connection, finding.resolve(connection, reference))
