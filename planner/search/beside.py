"""Two independent parts of one question at a time: one of them in a forked child process.

A part is a function of what is known when it starts, and gives the same answer wherever it runs.  A child that dies
leaves its part to the parent.  Only a process without threads is forked: a lock that another thread holds would stay
held in the child for ever.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Generic, NoReturn, TypeVar

Answer = TypeVar("Answer")


def can_fork(processes: int) -> bool:
    """Whether a part may run in a child: ``processes`` says how many are allowed."""
    if processes < 2 or not hasattr(os, "fork") or threading.active_count() > 1:
        return False
    return not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) > 1


class Beside(Generic[Answer]):
    """The answer of ``part``: worked out by a child from now on, or at once by this process."""

    def __init__(self, part: Callable[[], Answer], *, forks: bool) -> None:
        self._part, self._child = part, 0
        if forks:
            self._start()
        if not self._child:
            self.answer = part()

    def _start(self) -> None:
        read, write = os.pipe()
        # Ctrl-C goes to both; the child never hears of it, and the parent ends it.
        heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._child = os.fork()
            if self._child == 0:
                _tell(self._part, write)
        except OSError:
            # No room for another process.
            os.close(read)
        else:
            self._told = os.fdopen(read, "rb")
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, heard)
        os.close(write)

    @cached_property
    def answer(self) -> Answer:
        """The answer; waits for the child, and does its part where it died."""
        told = self._told.read()
        answer: Answer = pickle.loads(told) if self._ended() == 0 else self._part()
        return answer

    def stop(self) -> None:
        """End the child, whose answer nobody wants any more."""
        if self._child:
            os.kill(self._child, signal.SIGKILL)
            self._ended()

    def _ended(self) -> int:
        """Wait for the child's end: its exit code, below zero where a signal ended it."""
        self._told.close()
        _, status = os.waitpid(self._child, 0)
        self._child = 0
        return os.waitstatus_to_exitcode(status)


def _tell(part: Callable[[], object], write: int) -> NoReturn:
    """Work the part out and write its answer; an error is left to the parent, which meets it again."""
    try:
        with os.fdopen(write, "wb") as answer:
            answer.write(pickle.dumps(part()))
        os._exit(0)
    finally:
        os._exit(1)
