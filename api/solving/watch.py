"""The watch over a running task: its deadline, the stop with the best plan so far, and its progress."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from planner.search.options import SearchProgress

PROGRESS_INTERVAL_S = 0.2


class DeadlineReached(Exception):  # an event, not an error of anybody
    """The task was still running when its caller stopped waiting."""


class Watch:
    """What a task asks and tells while it runs: nobody waits after ``seconds`` from now (None = somebody always does).

    ``stop``: set when a search is to end with its best plan.  ``send``: takes progress, a ``JobProgress`` in JSON.
    """

    def __init__(self, seconds: float | None, stop: threading.Event, send: Callable[[bytes], None]) -> None:
        self._deadline = float("inf") if seconds is None else time.monotonic() + seconds
        self._sent_s = float("-inf")
        self.stop, self.send = stop, send

    @property
    def left_s(self) -> float:
        """Seconds until nobody waits; negative when that is past."""
        return self._deadline - time.monotonic()

    def check(self, *_: object) -> None:
        """Raises DeadlineReached."""
        if self.left_s < 0:
            raise DeadlineReached

    def report(self, state: SearchProgress) -> None:
        """Tell how far a search is, now and then.  Raises DeadlineReached."""
        self.check()
        if time.monotonic() - self._sent_s < PROGRESS_INTERVAL_S:
            return
        self._sent_s = time.monotonic()
        gap = None
        if state.incumbent_s and state.lower_bound_s is not None:
            gap = max(0.0, 1.0 - state.lower_bound_s / state.incumbent_s)
        progress = {
            "phase": "searching",
            "bounded": state.bounded,
            "evaluated": state.evaluated,
            "incumbent_s": state.incumbent_s,
            "bound_s": state.lower_bound_s,
            "gap": gap,
        }
        self.send(json.dumps(progress).encode())

    def report_sizes(self, phase: str, done: int, wanted: int) -> None:
        """Tell how many sizes of a fleet's jobs are known.  Raises DeadlineReached."""
        self.check()
        self.send(json.dumps({"phase": phase, "done": done, "wanted": wanted}).encode())
