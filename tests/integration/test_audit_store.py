"""The audit trail in both databases: rows are added, paged through, and never changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from api.access.api_keys import new_key
from planner.store import open_store
from planner.store.audit import AuditTrail
from planner.store.engine import writing
from planner.store.errors import StoreError
from planner.store.records import AuditEvent
from planner.store.repository import Store

EVENT = AuditEvent("begun", "r1", "key", "0a1b2c3d", "PUT", "/v1/labels/{name}", "production", "10.0.0.7")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with open_store(database_url) as found:
        yield found


def test_pages_go_back_from_the_newest(store: Store) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    trail = AuditTrail(store._engine, lambda: now)
    ended = AuditEvent("ended", "r1", "key", "0a1b2c3d", "PUT", "/v1/labels/{name}", status=200)
    trail.append([EVENT, ended])
    trail.append(
        [AuditEvent("refused", f"s{number}", "unknown", "", "GET", "/v1/plans", status=401) for number in range(5)]
    )
    trail.append([])
    first = trail.page(limit=3)
    rest = trail.page(limit=10, before=first[-1].seq)
    assert [each.event.request_id for each in (*first, *rest)] == ["s4", "s3", "s2", "s1", "s0", "r1", "r1"]
    assert [each.event for each in trail.page(limit=9, principal="0a1b2c3d")] == [ended, EVENT]
    assert [each.event for each in trail.page(limit=9, phase="begun")] == [EVENT]
    assert first[0].at == now
    assert trail.page(limit=9, before=1) == ()


def test_the_database_refuses_to_change_a_row(store: Store) -> None:
    store.audit().append([EVENT])
    with pytest.raises(StoreError, match="append-only"), writing(store._engine) as connection:
        connection.execute(text("UPDATE audit_events SET principal = 'somebody else'"))
    assert store.audit().page(limit=1)[0].event == EVENT


def test_what_no_column_holds_is_cut_and_cleaned(store: Store) -> None:
    long = AuditEvent("refused", "r" * 99, "unknown", "a" * 999, "B" * 99, "/" * 999, "x\x00\ud800y\n" + "z" * 999)
    store.audit().append([long])
    (record,) = store.audit().page(limit=1)
    assert record.event.resource.startswith(
        "x\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}y\N{REPLACEMENT CHARACTER}z"
    )
    assert (len(record.event.principal), len(record.event.resource)) == (255, 255)


def test_a_key_and_its_maker_are_kept_together_or_not_at_all(store: Store) -> None:
    record = new_key("ci", "read", None)[1]
    made = AuditEvent("done", "c1", "command", "root", "CLI", "token create", record.prefix)
    store.service().add_api_key(record, made)
    with pytest.raises(StoreError):
        store.service().add_api_key(record, made)
    assert store.service().revoke_api_key(record.prefix, made)
    assert len(store.audit().page(limit=9)) == 2
