"""The pool of warm processes: a few are started ahead and wait for the next task."""

from __future__ import annotations

import logging
import threading

from api.solving.process import SolverProcess

CHILD = "api.solving.child"

log = logging.getLogger("meshwright.solving")


class SolverPool:
    """Processes that wait for a task; as many as may compute at once.

    ``module``: what they run; ``niceness``: by how much they stand back; ``most_solves``: then one is replaced, so
    that a leak, wherever it is, stays small.
    """

    def __init__(
        self,
        size: int,
        memory_limit_bytes: int,
        *,
        module: str = CHILD,
        niceness: int = 0,
        most_solves: float = float("inf"),
    ) -> None:
        self._size, self._memory_limit_bytes = size, memory_limit_bytes
        self._module, self._niceness, self._most_solves = module, niceness, most_solves
        self._idle: list[SolverProcess] = []
        self._taken: set[SolverProcess] = set()
        self._lock = threading.Lock()
        self._closed = False

    def warm_up(self) -> None:
        """Start what is missing; called when a process may have been used up."""
        with self._lock:
            missing = 0 if self._closed else self._size - len(self._idle)
            self._idle += [self._start() for _ in range(missing)]

    def take(self) -> SolverProcess:
        """A process of one's own; started now when none waits, and dead when the pool is closed."""
        with self._lock:
            child = self._waiting() or self._start()
            self._taken.add(child)
            if self._closed:
                child.kill()
        return child

    def give_back(self, child: SolverProcess, *, healthy: bool) -> None:
        """The task is over; an unhealthy or worn process is replaced by a fresh one."""
        words = child.new_words()
        if words:
            log.warning("a computing process wrote: %s", words)
        if not (healthy and self._reusable(child)):
            child.kill()
        with self._lock:
            self._taken.discard(child)
            if not self._closed and len(self._idle) < self._size:
                self._idle.append(child if self._reusable(child) else self._start())
                return
        child.kill()

    def close(self, *, running: bool = False) -> None:
        """End every waiting process, and those that compute where ``running`` says so."""
        with self._lock:
            self._closed = True
            ended, self._idle = self._idle, []
            ended += self._taken if running else ()
        for child in ended:
            child.kill()

    def _waiting(self) -> SolverProcess | None:
        while self._idle:
            child = self._idle.pop()
            if self._reusable(child):
                return child
            child.kill()
        return None

    def _reusable(self, child: SolverProcess) -> bool:
        return child.lives and child.solves < self._most_solves

    def _start(self) -> SolverProcess:
        return SolverProcess.start(self._memory_limit_bytes, self._module, self._niceness)
