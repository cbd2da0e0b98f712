"""The limit of waiting jobs: refused only on a fresh count of the queue, admitted on one a moment old.

Counting reads the whole queue, so a count a submission would make n submissions cost n^2.  Between two counts a gate
adds what it has admitted itself; what other processes submit in that moment may exceed the limit by as much.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from api.errors import QueueFull
from api.jobs.queue_sql import read_load

RETRY_AFTER_S = 30
TRUSTED_S = 1.0
_MOST_OWNERS = 1_000
"""Counts that are kept; forgotten ones are read again."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How many jobs may wait before a submission is refused."""

    queued: int = 20_000
    queued_of_owner: int = 20_000


@dataclass(slots=True)
class _Count:
    read_at: float
    queued: int
    queued_of_owner: int


class QueueGate:
    """The limits of one board."""

    def __init__(self, limits: QueueLimits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits, self._now = limits, now
        self._lock = threading.Lock()
        self._counts: dict[str, _Count] = {}

    def admit(self, connection: Connection, owner: str) -> None:
        """Count one more waiting job of ``owner``.  Raises QueueFull."""
        with self._lock:
            count = self._counts.get(owner)
            if count is None or self._now() - count.read_at > TRUSTED_S or self._full(count):
                count = self._read(connection, owner)
            self._refuse_when_full(count)
            count.queued_of_owner += 1
            for each in self._counts.values():
                each.queued += 1

    def _read(self, connection: Connection, owner: str) -> _Count:
        load = read_load(connection, owner)
        if len(self._counts) >= _MOST_OWNERS:
            self._counts.clear()
        count = self._counts[owner] = _Count(self._now(), load.queued, load.queued_of_owner)
        return count

    def _full(self, count: _Count) -> bool:
        return count.queued >= self.limits.queued or count.queued_of_owner >= self.limits.queued_of_owner

    def _refuse_when_full(self, count: _Count) -> None:
        if not self._full(count):
            return
        whole = count.queued >= self.limits.queued
        raise QueueFull(
            f"{count.queued:,} jobs wait already" if whole else f"{count.queued_of_owner:,} of your jobs wait already",
            hint=f"try again in {RETRY_AFTER_S} s, or cancel jobs that are no longer wanted",
            retry_after_s=RETRY_AFTER_S,
        )
