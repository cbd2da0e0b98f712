"""How long a computing process that was told to end is waited for: seconds in which it could have worked.

On a crowded machine it stands in the queue for a processor, and wall time says nothing about it::

    waited += processor seconds used     while one of its processes is running or waits for a processor
    waited += wall seconds               while all of them sleep, which is what a hung one does

Read from ``/proc`` (Linux); elsewhere all time is wall time.  Times in seconds.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

RUNNABLE = b"R"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Use(NamedTuple):
    """What the processes of a session have used so far, and whether one of them could use more."""

    processor_s: float
    runnable: bool


@dataclass(slots=True)
class Patience:
    """Counts from its making on; ``session`` is the number of the process that leads the session."""

    session: int
    waited_s: float = 0.0
    _wall_s: float = field(default_factory=time.monotonic)
    _used_s: float | None = None

    def __post_init__(self) -> None:
        self._used_s = use_of(self.session).processor_s

    def look(self) -> float:
        """Seconds waited so far; each look adds those since the one before."""
        use, wall_s = use_of(self.session), time.monotonic()
        passed_s, self._wall_s = wall_s - self._wall_s, wall_s
        used_s = use.processor_s - (self._used_s or 0.0)
        self._used_s = use.processor_s
        # What ended between two looks takes its processor time with it.
        self.waited_s += min(passed_s, max(used_s, 0.0)) if use.runnable else passed_s
        return self.waited_s


def use_of(session: int) -> Use:
    """Processor time of the processes of a session that live, and of their children that have ended."""
    used_ticks, runnable = 0, False
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            line = stat.read_bytes()
        except OSError:
            continue
        # The name in parentheses may hold anything.
        fields = line[line.rfind(b")") + 2 :].split()
        if int(fields[3]) == session:
            used_ticks += sum(int(ticks) for ticks in fields[11:15])
            runnable = runnable or fields[0] == RUNNABLE
    return Use(used_ticks / _TICKS_PER_S, runnable)
