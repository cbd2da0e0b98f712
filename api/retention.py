"""What the service removes, and when: ended jobs and sweeps, keys, audit events, each after its own time.

Plans, labels and named documents stay.  Of several services on one PostgreSQL database one removes at a time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Self

from pydantic import Field, model_validator

from api.jobs.board import JobBoard
from api.telemetry.logs import FIELDS
from planner.store.records import AuditEvent
from planner.store.repository import Store
from profiles.document import Document
from profiles.errors import MeshwrightError

PORTION = 500
"""Rows removed in one transaction: others write in between."""
FIRST_S = 60.0
END_WAIT_S = 10.0

log = logging.getLogger("meshwright.retention")


class RetentionSettings(Document):
    """How long things are kept.  None = for ever."""

    idempotency_keys_days: int | None = Field(default=30, ge=1, description="requests under a client's own key or id")
    jobs_days: int | None = Field(default=90, ge=1, description="jobs that have ended; their plans stay")
    sweeps_days: int | None = Field(default=90, ge=1, description="sweeps that have ended; their plans stay")
    api_keys_days: int | None = Field(default=90, ge=1, description="API keys that have expired or were revoked")
    audit_days: int | None = Field(default=365, ge=1, description="the audit trail")
    every_s: float = Field(default=3600.0, gt=0, description="how often the service looks")

    @model_validator(mode="after")
    def _keys_name_jobs(self) -> Self:
        jobs, keys = self.jobs_days, self.idempotency_keys_days
        if jobs is not None and (keys is None or keys > jobs):
            raise ValueError("jobs_days must be at least idempotency_keys_days: a kept key names its job")
        return self


class Removed(Document):
    """How much went."""

    idempotency_keys: int = 0
    jobs: int = 0
    sweeps: int = 0
    api_keys: int = 0
    audit_events: int = 0


def prune(
    store: Store,
    board: JobBoard | None,
    settings: RetentionSettings,
    *,
    now: datetime | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_record: AuditEvent | None = None,
) -> Removed | None:
    """Remove what is too old, and put that on record; None while another service does.  Blocks.  Raises StoreError."""
    moment = now or datetime.now(UTC)
    retention = store.retention()

    def remove(days: int | None, forget: Callable[[datetime, int], int]) -> int:
        total, portion = 0, PORTION
        while days is not None and portion == PORTION and not stop():
            portion = forget(moment - timedelta(days=days), PORTION)
            total += portion
        return total

    with retention.alone() as alone:
        if not alone:
            return None
        removed = Removed(
            idempotency_keys=remove(settings.idempotency_keys_days, retention.forget_keys),
            jobs=0 if board is None else remove(settings.jobs_days, board.forget),
            sweeps=remove(settings.sweeps_days, retention.forget_sweeps),
            api_keys=remove(settings.api_keys_days, retention.forget_api_keys),
            audit_events=remove(settings.audit_days, retention.forget_audit),
        )
        if any(removed.model_dump().values()) or on_record is not None:
            words = ", ".join(f"{count} {name}" for name, count in removed.model_dump().items())
            by = on_record or AuditEvent("done", "", "command", "retention", "TASK", "retention")
            store.audit().append([by.with_resource(words)])
    return removed


class Pruning:
    """Looks every ``every_s``, in a thread of its own; a database that is away is tried again the next time."""

    def __init__(self, store: Store, board: JobBoard | None, settings: RetentionSettings) -> None:
        self._store, self._board, self._settings = store, board, settings
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        """Begin; the first look is soon."""
        self._thread.start()

    def stop(self) -> None:
        """End after the portion that is being removed."""
        self._end.set()
        self._thread.join(END_WAIT_S)

    def _run(self) -> None:
        wait_s = min(FIRST_S, self._settings.every_s)
        while not self._end.wait(wait_s):
            wait_s = self._settings.every_s
            try:
                removed = prune(self._store, self._board, self._settings, stop=self._end.is_set)
            except MeshwrightError as error:
                log.warning("what is too old could not be removed now: %s", error.slug)
                continue
            except Exception:  # a thread that dies here would be missed by nobody until the disk is full
                log.exception("what is too old could not be removed")
                continue
            if removed is not None and any(removed.model_dump().values()):
                log.info("removed what was too old", extra={FIELDS: removed.model_dump()})
