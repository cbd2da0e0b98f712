"""The service ends and comes back under those who watch and ask; the queue is full; all ask the same at once.

The long forms, with the figures: ``python -m benchmarks.faults``.
"""

from __future__ import annotations

import pytest

from benchmarks.faults_queue import equal_keys, queue_full
from benchmarks.faults_service import restarts_under_a_watcher, rolling_restart
from tests.faults.test_clock_faults import KINDS
from tests.faults.test_database_faults import assert_promises_kept
from tests.postgres_server import server_programs

pytestmark = pytest.mark.slow


def test_a_watching_client_sees_every_event_once_whatever_ends_the_service() -> None:
    seen = restarts_under_a_watcher("sqlite", 2)
    assert (seen["events_missing"], seen["events_doubled"], seen["in_order"]) == (0, 0, True)
    assert (seen["watcher_failed"], seen["ended_as"]) == (None, "cancelled")


@pytest.mark.postgres
@pytest.mark.skipif(server_programs() is None, reason="PostgreSQL server programs are not installed")
def test_a_rolling_restart_fails_no_request_that_is_repeated_once() -> None:
    seen = rolling_restart(1, clients=2)
    assert_promises_kept(seen)
    assert seen["failed_after_one_repetition"] == 0
    assert set(seen["answers"]) <= {"200", "202", "unreachable"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_queue_refuses_with_a_moment_to_come_back_and_keeps_nothing(kind: str) -> None:
    seen = queue_full(kind, 10)
    assert (seen["answers"], seen["without_retry_after"], seen["slugs"]) == ({"429": 10}, 0, ["queue-full"])
    assert (seen["jobs_stored"], seen["keys_stored"]) == (0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_equal_requests_at_once_are_one_job(kind: str) -> None:
    seen = equal_keys(kind)
    assert (seen["jobs"], seen["ids"], seen["again"], seen["other_content"]) == (1, 1, 202, 422)
    assert set(seen["answers"]) <= {"202", "409"}
