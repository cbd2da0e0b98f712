"""A process that sleeps is waited for by the clock, one that stands in the queue for a processor by what it gets."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from api.solving.patience import Patience, use_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
SPIN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); os.nice(int(sys.argv[2]))\nwhile True: pass"
SLEEP = "import time; time.sleep(600)"
LOOKS, LOOK_S = 20, 0.1


@contextmanager
def running(*arguments: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", *arguments], start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def waited(session: int) -> tuple[float, float]:
    """Seconds that count, and seconds that passed."""
    patience, start_s = Patience(session), time.monotonic()
    for _ in range(LOOKS):
        time.sleep(LOOK_S)
        patience.look()
    return patience.waited_s, time.monotonic() - start_s


def test_sleep_counts_as_it_passes() -> None:
    with running(SLEEP) as session:
        time.sleep(0.5)
        counted_s, passed_s = waited(session)
    assert counted_s > 0.9 * passed_s


def test_waiting_for_a_processor_does_not_count() -> None:
    processor = str(min(os.sched_getaffinity(0)))
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(running(SPIN, processor, "0"))
        session = stack.enter_context(running(SPIN, processor, "19"))
        time.sleep(0.5)
        counted_s, passed_s = waited(session)
        assert use_of(session).runnable
    assert counted_s < 0.5 * passed_s


def test_a_session_that_has_ended_counts_as_sleep() -> None:
    with running("pass") as session:
        time.sleep(0.5)
    counted_s, passed_s = waited(session)
    assert counted_s > 0.9 * passed_s
