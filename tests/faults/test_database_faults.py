"""PostgreSQL goes away and comes back under the real service and worker: nothing acknowledged is lost, no 500.

The long forms, with the figures: ``python -m benchmarks.faults --fault crash --fault away``.
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.faults_database import outages
from tests.postgres_server import server_programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgres,
    pytest.mark.skipif(server_programs() is None, reason="PostgreSQL server programs are not installed"),
]


def assert_promises_kept(seen: dict[str, Any]) -> None:
    """What holds of every fault under load."""
    assert seen["acknowledged"] > 0
    counts = ("lost", "doubled", "wrong_plans", "events_with_holes", "http_500")
    assert {name: seen[name] for name in counts} == dict.fromkeys(counts, 0)
    assert seen["answers_at_fault"] == []
    assert set(seen["statuses"]) == {"succeeded"}


def test_a_database_that_crashes_again_and_again_loses_nothing_that_was_acknowledged() -> None:
    seen = outages("crashes", [0.5, 1.0], clients=2)
    assert_promises_kept(seen)
    assert seen["answers"]["503"] > 0
    assert set(seen["answers"]) <= {"200", "202", "503", "409"}
    assert (seen["ready_afterwards"], seen["worker_lived_on"]) == (True, True)


def test_a_database_that_is_away_for_longer_is_waited_for() -> None:
    seen = outages("away", [6.0], clients=2)
    assert_promises_kept(seen)
    assert (seen["ready_while_away"], seen["alive_while_away"]) == (False, True)
    assert (seen["ready_afterwards"], seen["worker_lived_on"]) == (True, True)
    # Both say that it went on by itself: a submission was taken, and a job ended, after the return.
    assert seen["first_acknowledgement_after_return_s"] < float("inf")
    assert seen["first_job_ended_after_return_s"] < float("inf")
