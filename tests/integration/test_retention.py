"""What is old goes, what is young or still needed stays, and one process removes at a time; on both databases."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy import text

from api.jobs.dbos_board import DbosBoard
from api.retention import Removed, RetentionSettings, prune
from planner.question.problem import Workload
from planner.store import open_store
from planner.store.audit import AuditTrail
from planner.store.records import ApiKeyRecord, AuditEvent, SweepCell
from planner.store.repository import Store
from planner.store.service import ServiceStore
from planner.store.sweeps import WAITING, Asked, SweepStore
from profiles.errors import NotFound
from tests.command_line import run_here
from tests.job_requests import small_request
from tests.running_service import service

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SHA = "0" * 64
KEPT = ("idempotency_keys_days", "jobs_days", "sweeps_days", "api_keys_days", "audit_days")
SETTINGS = RetentionSettings(idempotency_keys_days=10, jobs_days=20, sweeps_days=20, api_keys_days=20, audit_days=30)
EVENT = AuditEvent("ended", "r", "key", "0a1b2c3d", "PUT", "/v1/labels/{name}", status=200)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with open_store(database_url) as found:
        yield found


def fill(store: Store, days: float, count: int = 1) -> None:
    """Keys and audit events of some days ago."""
    then = NOW - timedelta(days=days)
    for number in range(count):
        records = ServiceStore(store._engine, lambda: then)
        assert records.claim_key("ann", f"{days}-{number}", SHA) is None
    AuditTrail(store._engine, lambda: then).append([EVENT] * count)


def test_each_thing_goes_after_its_own_time_and_that_is_on_record(store: Store) -> None:
    for days in (1, 9, 11, 29, 31):
        fill(store, days)
    assert prune(store, None, SETTINGS, now=NOW) == Removed(idempotency_keys=3, jobs=0, audit_events=1)
    newest, *rest = store.audit().page(limit=99)
    assert (newest.event.phase, newest.event.route) == ("done", "retention")
    assert "3 idempotency_keys" in newest.event.resource
    assert len(rest) == 4
    assert prune(store, None, SETTINGS, now=NOW) == Removed()
    assert len(store.audit().page(limit=99)) == 5, "nothing removed, nothing said"


def test_for_ever_is_for_ever(store: Store) -> None:
    fill(store, 5000)
    kept = RetentionSettings.model_validate(dict.fromkeys(KEPT))
    assert prune(store, None, kept, now=NOW) == Removed()


def test_much_goes_in_portions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.retention.PORTION", 4)
    fill(store, 100, 10)
    ends = iter([False, False, True])
    assert prune(store, None, SETTINGS, now=NOW, stop=lambda: next(ends, True)) == Removed(idempotency_keys=8)
    assert prune(store, None, SETTINGS, now=NOW) == Removed(idempotency_keys=2, audit_events=10)


def test_api_keys_go_when_they_have_been_useless_for_long(store: Store) -> None:
    records = store.service()
    for prefix, expires_days, revoked_days in (
        ("good", None, None),
        ("later", -5, None),
        ("lately", 5, None),
        ("expired", 25, None),
        ("revoked", None, 25),
    ):
        ends, ended = (None if days is None else NOW - timedelta(days=days) for days in (expires_days, revoked_days))
        made = NOW - timedelta(days=500)
        records.add_api_key(ApiKeyRecord(prefix, SHA, prefix, ("read",), made, expires_at=ends, revoked_at=ended))
    assert prune(store, None, SETTINGS, now=NOW) == Removed(api_keys=2)
    assert {each.prefix for each in records.api_keys()} == {"good", "later", "lately"}


def test_sweeps_go_when_they_have_ended_long_ago_with_their_cells(store: Store) -> None:
    plain, shared = (
        Workload(global_batch_size=8, sequence_length=2048),
        Workload(global_batch_size=9, sequence_length=8),
    )
    cells = {"open": [SweepCell(0, WAITING, "{}")], "ended": [SweepCell(0, "planned", "{}")]}
    for name, days, document, state in (
        ("a", 25, plain, "ended"),
        ("b", 25, shared, "ended"),
        ("c", 25, shared, "open"),
        ("d", 5, shared, "ended"),
    ):
        sweeps = SweepStore(store._engine, lambda days=days: NOW - timedelta(days=days))  # type: ignore[misc]
        sweeps.keep(name * 64, Asked(document, document), "ann", cells[state])
    assert prune(store, None, SETTINGS, now=NOW) == Removed(sweeps=2)
    assert {each.sweep_id[0] for each in store.sweeps().page(limit=9)} == {"c", "d"}
    assert store.sweeps().cells("a" * 64) == ()
    with store._engine.connect() as connection:
        kept = connection.execute(text("SELECT count(*) FROM documents WHERE kind = 'sweep'")).scalar()
    assert kept == 1, "the document that other sweeps have stays"


@pytest.mark.postgres
def test_of_two_services_on_one_database_one_removes(postgres_url: str) -> None:
    with open_store(postgres_url) as first, open_store(postgres_url) as second:
        fill(first, 100)
        with first.retention().alone() as alone:
            assert alone
            assert prune(second, None, SETTINGS, now=NOW) is None
        removed = prune(second, None, SETTINGS, now=NOW)
        assert removed is not None
        assert removed.idempotency_keys == 1


def test_ended_jobs_go_with_their_keys_and_waiting_ones_stay(database_url: str) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=1)
    with DbosBoard.open(database_url) as board:
        ended = board.submit(small_request(), key="k", owner="ann")
        board.cancel(ended.id)
        waiting = board.submit(small_request(16), key=None, owner="ann")
        assert board.forget(datetime.now(UTC) - timedelta(minutes=1), 10) == 0
        assert board.get(ended.id).status == "cancelled"
        assert board.forget(soon, 10) == 1
        with pytest.raises(NotFound):
            board.get(ended.id)
        assert board.get(waiting.id) == waiting
        with board._engine.connect() as connection:
            table = "workflow_status" if database_url.startswith("sqlite") else "dbos.workflow_status"
            assert connection.execute(text(f"SELECT count(*) FROM {table} WHERE name = 'key'")).scalar() == 0
        again = board.submit(small_request(), key="k", owner="ann")
        assert (again.id, again.status) == (ended.id, "queued")


def test_a_content_is_forgotten_as_a_whole(database_url: str) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=1)
    with DbosBoard.open(database_url) as board:
        ids = []
        for _ in range(3):
            ids.append(board.submit(small_request(), key=None, owner="ann").id)
            board.cancel(ids[-1])
        last = board.submit(small_request(), key=None, owner="ann")
        assert board.forget(soon, 10) == 0, "a younger job of this content waits"
        board.cancel(last.id)
        assert board.forget(soon, 3) == 3
        assert board.forget(soon, 3) == 1


def test_a_running_service_removes_by_itself(database_url: str) -> None:
    with open_store(database_url) as store:
        assert ServiceStore(store._engine, lambda: NOW - timedelta(days=9999)).claim_key("ann", "old", SHA) is None
        with service(database_url, retention=RetentionSettings(every_s=0.05)):
            end_s = time.monotonic() + 300
            while store.service().keyed_request("ann", "old") is not None:
                assert time.monotonic() < end_s
                time.sleep(0.05)


def test_the_command_removes_and_says_so(tmp_path: Path) -> None:
    database = str(tmp_path / "plans.db")
    with open_store(database) as store:
        assert ServiceStore(store._engine, lambda: NOW - timedelta(days=9999)).claim_key("ann", "old", SHA) is None
    assert not (tmp_path / "plans.jobs.db").exists()
    done = run_here("db", "prune", "--keys-days", "5", "--database", database, "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"idempotency_keys": 1, "jobs": 0, "sweeps": 0, "api_keys": 0, "audit_events": 0}
    assert not (tmp_path / "plans.jobs.db").exists()
    with DbosBoard.open(database) as board:
        board.cancel(board.submit(small_request(), key=None, owner="ann").id)
    assert run_here("db", "prune", "--database", database).stdout.startswith("Removed: 0 idempotency keys, 0 jobs")
    with open_store(database) as store:
        events = [each.event for each in store.audit().page(limit=9)]
    assert [(event.kind, event.route) for event in events] == [("command", "db prune")] * 2
    wrong = run_here("db", "prune", "--keys-days", "50", "--jobs-days", "5", "--database", database)
    assert wrong.exit_code == 2
    assert "jobs_days" in wrong.stderr


@pytest.mark.parametrize("changes", [{"jobs_days": 5}, {"idempotency_keys_days": None}, {"audit_days": 0}])
def test_jobs_are_kept_as_long_as_keys_that_name_them(changes: dict[str, int | None]) -> None:
    with pytest.raises(ValidationError):
        RetentionSettings.model_validate(changes)
