"""The wall clock jumps by an hour: of a worker while it searches, of a service while it is asked.

The long form, with the figures: ``python -m benchmarks.faults --fault worker-clock --fault service-clock``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.faults_clock import HOUR_S, clock_in, service_clock_jumps, worker_clock_jumps
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


SLEEP_S = 0.2
SLEEPER = f"""
import json, sys, time
for _ in range(4):
    input()
    began = time.time(), time.monotonic()
    time.sleep({SLEEP_S})
    print(json.dumps([began[0], time.monotonic() - began[1]]), flush=True)
"""


def test_only_the_wall_clock_jumps_and_sleeps_last_as_long_as_they_should(tmp_path: Path) -> None:
    clock, told = clock_in(tmp_path), []
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **clock.environment},
    ) as sleeper:
        assert sleeper.stdin is not None
        assert sleeper.stdout is not None
        for shift_s in (0, HOUR_S, -HOUR_S, 0):
            clock.shift(shift_s)
            sleeper.stdin.write(b"\n")
            sleeper.stdin.flush()
            told.append(json.loads(sleeper.stdout.readline() or b"[0, 0]"))
    assert sleeper.returncode == 0
    assert [slept_s >= SLEEP_S for _, slept_s in told] == [True] * 4
    (first, _), *later = told
    assert [round((at - first) / HOUR_S) for at, _ in later] == [1, -1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_whose_clock_jumps_is_not_taken_for_dead(kind: str) -> None:
    seen = worker_clock_jumps(kind, 2)
    counts = ("lost", "doubled", "wrong_plans", "events_with_holes")
    assert {name: seen[name] for name in counts} == dict.fromkeys(counts, 0)
    assert seen["attempts"] == {"1": seen["acknowledged"]}, f"a job ran twice: {seen}"
    # Each of two jumps had two short jobs; the three without end ran through all of it, until they were cancelled.
    assert seen["statuses"] == {"succeeded": 4, "cancelled": 3}
    assert seen["farthest_clock_seen_s"] > HOUR_S / 2, "the clock did not jump"


def test_a_service_whose_clock_jumps_answers_and_tells_keys_by_it() -> None:
    seen = service_clock_jumps("sqlite", 2)
    assert_promises_kept(seen)
    assert seen["attempts"] == {"1": seen["acknowledged"]}
    assert seen["key_of_half_an_hour"] == [(-HOUR_S, 200), (0, 200), (HOUR_S, 401)]
