"""The wall clock jumps by an hour: of a worker while it searches, of a service while it is asked.

The long form, with the figures: ``python -m benchmarks.faults --fault worker-clock --fault service-clock``.
"""

from __future__ import annotations

import pytest

from benchmarks.faults_clock import HOUR_S, service_clock_jumps, worker_clock_jumps
from tests.faults.test_database_faults import assert_promises_kept
from tests.postgres_server import server_programs
from tests.shifted_clock import faketime_library

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(faketime_library() is None, reason="libfaketime is not installed (Debian: faketime)"),
]
KINDS = [
    "sqlite",
    pytest.param(
        "postgresql",
        marks=[
            pytest.mark.postgres,
            pytest.mark.skipif(server_programs() is None, reason="PostgreSQL server programs are not installed"),
        ],
    ),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_whose_clock_jumps_is_not_taken_for_dead(kind: str) -> None:
    seen = worker_clock_jumps(kind, 2)
    counts = ("lost", "doubled", "wrong_plans", "events_with_holes")
    assert {name: seen[name] for name in counts} == dict.fromkeys(counts, 0)
    assert seen["attempts"] == {"1": seen["acknowledged"]}, f"a job ran twice: {seen}"
    assert seen["farthest_clock_seen_s"] > HOUR_S / 2, "the clock did not jump"


def test_a_service_whose_clock_jumps_answers_and_tells_keys_by_it() -> None:
    seen = service_clock_jumps("sqlite", 2)
    assert_promises_kept(seen)
    assert seen["attempts"] == {"1": seen["acknowledged"]}
    assert seen["key_of_half_an_hour"] == [(-HOUR_S, 200), (0, 200), (HOUR_S, 401)]
