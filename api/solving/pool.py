"""Where does the next solve find a warm child?  A few are started ahead and wait."""

from __future__ import annotations

import threading

from api.solving.process import SolverProcess


class SolverPool:
    """Children that wait for a solve; as many as may run at once."""

    def __init__(self, size: int, memory_limit_bytes: int, module: str) -> None:
        self._size, self._memory_limit_bytes, self._module = size, memory_limit_bytes, module
        self._idle: list[SolverProcess] = []
        self._lock = threading.Lock()
        self._closed = False

    def warm_up(self) -> None:
        """Start what is missing; called when a child may have been used up."""
        with self._lock:
            missing = 0 if self._closed else self._size - len(self._idle)
            self._idle += [self._start() for _ in range(missing)]

    def take(self) -> SolverProcess:
        """A child of one's own; started now when none waits."""
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.reusable:
                    return child
                child.kill()
        return self._start()

    def give_back(self, child: SolverProcess, *, healthy: bool) -> None:
        """The solve is over; an unhealthy or worn child is replaced by a fresh one."""
        if not (healthy and child.reusable):
            child.kill()
            child = self._start() if not self._closed else child
        with self._lock:
            if not self._closed and len(self._idle) < self._size and child.reusable:
                self._idle.append(child)
                return
        child.kill()

    def close(self) -> None:
        """End every waiting child."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()

    def _start(self) -> SolverProcess:
        return SolverProcess.start(self._memory_limit_bytes, self._module)
