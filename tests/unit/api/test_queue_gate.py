"""Another job is refused on a fresh count only, whatever was remembered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine, text

from api.errors import QueueFull
from api.jobs.queue_gate import TRUSTED_S, QueueGate, QueueLimits
from api.jobs.system_database import QUEUE, status_table


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as opened:
        columns = "workflow_uuid, status, queue_name, authenticated_user, created_at"
        opened.execute(text(f"CREATE TABLE {status_table(engine)} ({columns})"))
        yield opened


def submit(connection: Connection, owner: str, count: int = 1) -> None:
    """Jobs of another process."""
    row = f"INSERT INTO {status_table(connection.engine)} VALUES ('job', 'ENQUEUED', :queue, :owner, 0)"
    for _ in range(count):
        connection.execute(text(row), {"queue": QUEUE, "owner": owner})


def test_its_own_jobs_count_at_once(connection: Connection) -> None:
    gate = QueueGate(QueueLimits(queued=3, queued_of_owner=2), Clock())
    for owner in ("ann", "ann", "bob"):
        gate.admit(connection, owner)
        submit(connection, owner)
    with pytest.raises(QueueFull, match="3 jobs wait already"):
        gate.admit(connection, "bob")
    with pytest.raises(QueueFull):
        gate.admit(connection, "ann")


def test_one_owner_may_be_full_alone(connection: Connection) -> None:
    gate = QueueGate(QueueLimits(queued=9, queued_of_owner=2), Clock())
    submit(connection, "ann", 2)
    with pytest.raises(QueueFull, match="2 of your jobs wait already") as caught:
        gate.admit(connection, "ann")
    assert caught.value.retry_after_s == 30
    gate.admit(connection, "bob")


def test_the_jobs_of_others_count_after_a_moment(connection: Connection) -> None:
    clock = Clock()
    gate = QueueGate(QueueLimits(queued=5), clock)
    gate.admit(connection, "ann")
    submit(connection, "bob", 5)
    gate.admit(connection, "ann")
    clock.now_s += 2 * TRUSTED_S
    with pytest.raises(QueueFull):
        gate.admit(connection, "ann")


def test_nobody_is_refused_on_an_old_count(connection: Connection) -> None:
    gate = QueueGate(QueueLimits(queued=2), Clock())
    gate.admit(connection, "ann")
    gate.admit(connection, "ann")
    # None of them is there any more: they ran meanwhile.
    gate.admit(connection, "ann")
