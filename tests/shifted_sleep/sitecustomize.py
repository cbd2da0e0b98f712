"""Repairs Python's sleep under libfaketime.  Loaded where ``tests.shifted_clock`` shifts the clock.

CPython from 3.11 on sleeps until a moment of the monotonic clock: clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME).
libfaketime 0.9.10, which Debian 12 has, subtracts its wall clock from that moment also where it is told to leave the
monotonic clock alone, so the kernel is asked for a moment before its start and every sleep fails at once: OSError,
EINVAL (https://github.com/wolfcw/libfaketime/issues/426, repaired after that release).  select() is given how long to
wait, not until when, which libfaketime hands on as it is.
"""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex, /) -> None:
    """``time.sleep``: at least so long, also where signals arrive.  Raises ValueError when negative."""
    select.select([], [], [], float(seconds))


time.sleep = sleep
