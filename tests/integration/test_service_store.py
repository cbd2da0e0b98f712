"""What the service keeps, on both databases: named documents, keys, and requests under a client's own key."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from planner.store import open_store
from planner.store.repository import Store
from planner.store.service import ABANDONED, ServiceStore
from profiles.catalogue import load_cluster
from profiles.errors import Conflict
from tests.plan_factory import make_plan

SHA = "0" * 64


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with open_store(database_url) as found:
        yield found


def test_a_key_is_claimed_once_answered_and_replayed(store: Store) -> None:
    records = store.service()
    assert records.claim_key("ann", "k", SHA) is None
    running = records.claim_key("ann", "k", SHA)
    assert running is not None
    assert not running.answered
    assert records.claim_key("bob", "k", SHA) is None, "keys belong to their owner"
    records.answer_key("ann", "k", plan_id="p" * 64)
    done = records.claim_key("ann", "k", "1" * 64)
    assert done is not None
    assert (done.answered, done.plan_id, done.request_sha) == (True, "p" * 64, SHA)
    records.release_key("ann", "k")
    assert records.keyed_request("ann", "k") == done, "an answer is kept"
    records.release_key("bob", "k")
    assert records.keyed_request("bob", "k") is None


def test_of_a_hundred_equal_keys_one_wins(store: Store) -> None:
    records = store.service()
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: records.claim_key("ann", "rush", SHA), range(100)))
    assert answers.count(None) == 1


def test_an_abandoned_key_is_taken_over_and_old_ones_are_forgotten(store: Store) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    records = ServiceStore(store._engine, lambda: now[0])
    assert records.claim_key("ann", "k", SHA) is None
    now[0] += ABANDONED - timedelta(seconds=1)
    assert records.claim_key("ann", "k", SHA) is not None
    now[0] += timedelta(seconds=2)
    assert records.claim_key("ann", "k", SHA) is None
    for _ in range(3):
        now[0] += ABANDONED - timedelta(seconds=1)
        records.renew_keys([("ann", "k"), ("bob", "unknown")])
    assert records.claim_key("ann", "k", SHA) is not None, "its server lives"
    records.answer_key("ann", "k", job_id="j")
    now[0] += timedelta(days=30)
    assert records.claim_key("ann", "k", SHA) is not None, "what was answered stays"
    assert store.retention().forget_keys(now[0] - timedelta(days=7), 10) == 1
    assert records.keyed_request("ann", "k") is None


def test_names_are_versioned_and_only_change_from_the_current_version(store: Store) -> None:
    records = store.service()
    first, second = load_cluster("dgx-a100-80g"), load_cluster("dgx-h100")
    assert records.named("cluster", "ours") is None
    made = records.put_named("cluster", "ours", first, None)
    assert (made.version, made.sha) == (1, first.content_hash())
    with pytest.raises(Conflict):
        records.put_named("cluster", "ours", second, None)
    assert records.put_named("cluster", "ours", first, made.sha).version == 1, "the same again is no version"
    assert records.put_named("cluster", "ours", second, made.sha).version == 2
    found = records.named("cluster", "ours")
    assert found is not None
    assert found[1] == second.model_dump(mode="json")
    assert records.named("model", "ours") is None, "kinds are apart"
    assert [record.version for record in records.list_named("cluster")] == [2]


def test_of_many_writers_of_one_version_one_wins(store: Store) -> None:
    records = store.service()
    cluster = load_cluster("dgx-a100-80g")
    versions = [cluster.model_copy(update={"price_per_device_hour": float(price)}) for price in range(1, 9)]

    def put(index: int) -> bool:
        try:
            records.put_named("cluster", "ours", versions[index], None)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(put, range(8))) == 1


def test_the_text_of_a_plan_is_its_canonical_json(store: Store) -> None:
    plan = make_plan()
    store.save_plan(plan, 0.1)
    text = store.plan_text(plan.plan_id[:10])
    assert (text.plan_id, text.problem_id, text.body) == (plan.plan_id, plan.problem.problem_id, plan.canonical_json())
    assert store.find_answer(plan.problem.problem_id) == text
    assert store.find_answer("0" * 64) is None
    assert [each.plan_id for each in store.list_plans(problem_id=text.problem_id)] == [plan.plan_id]
    assert store.list_plans(problem_id="0" * 64) == ()


def test_a_fresh_database_is_ready(store: Store) -> None:
    assert store.service().is_ready()
