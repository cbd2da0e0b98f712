"""Tasks that a client waits for: a few warm processes, each with one task at a time and a hard end.

A process that dies or overstays is replaced; the others and the service never notice.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from api.errors import ServiceBusy, SolverCrashed
from api.http.asking import ASKING
from api.http.problem_responses import AnswerRefused
from api.solving.messages import Message
from api.solving.pool import SolverPool
from api.solving.process import SolverProcess
from api.solving.turns import Turns
from api.telemetry.metrics import Metrics
from api.telemetry.tracing import span
from api.wire.problem_details import ProblemDetails, plain_problem

GRACE_S = 2.0
"""A task looks at its clock now and then; after this much more it is killed."""
START_S = 60.0
NICENESS = 5
"""Below the event loop: a machine full of searches still answers look-ups."""

log = logging.getLogger("meshwright.api")


class TooLong(Exception):  # an event that the caller expects
    """The answer did not come within the time given."""


class TaskRunner:
    """``size`` processes, at most ``most_of_caller`` of them for one caller; ``run`` gives a task to a free one."""

    def __init__(self, size: int, memory_bytes: int, metrics: Metrics, most_of_caller: int | None = None) -> None:
        self._pool = SolverPool(size, memory_bytes, niceness=NICENESS)
        self._turns = Turns(size, size if most_of_caller is None else min(size, most_of_caller))
        self._threads = ThreadPoolExecutor(max_workers=size, thread_name_prefix="solver")
        self._metrics = metrics

    async def start(self) -> None:
        """Start every process; returns without waiting until they are warm."""
        self._pool.warm_up()

    async def stop(self) -> None:
        """End every process."""
        self._pool.close(running=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, task: str, payload: Mapping[str, Any], limit_s: float) -> bytes:
        """The answer of a task.  Cancelled, it ends the process that computes it.

        Raises TooLong after ``limit_s`` (waiting for a process included), AnswerRefused with the task's own problem,
        SolverCrashed when the process died, ServiceBusy when no process became free.
        """
        with span("solve", **{"meshwright.task": task}) as opened:
            message = await self._message(task, payload, limit_s)
            if opened is not None:
                opened.set_attribute("meshwright.outcome", _outcome(message))
        return _read(message)

    async def _message(self, task: str, payload: Mapping[str, Any], limit_s: float) -> Message:
        start_s, caller = time.monotonic(), ASKING.get()
        try:
            async with asyncio.timeout(limit_s):
                await self._turns.take(caller)
        except TimeoutError:
            self._metrics.observe_solve(task, "no-process", limit_s)
            raise ServiceBusy("every process computes", hint="try again", retry_after_s=5) from None
        left_s = max(limit_s - (time.monotonic() - start_s), 0.1)
        running = _Running()
        call = asyncio.get_running_loop().run_in_executor(
            self._threads, self._call, running, task, dict(payload), left_s
        )
        # The process is busy until its end is known, also when nobody waits any more.
        call.add_done_callback(lambda _done: self._turns.give_back(caller))
        try:
            message = await asyncio.shield(call)
        except asyncio.CancelledError:
            running.end()
            self._metrics.observe_solve(task, "given-up", time.monotonic() - start_s)
            raise
        self._metrics.observe_solve(task, _outcome(message), time.monotonic() - start_s)
        return message

    def _call(self, running: _Running, task: str, payload: dict[str, Any], seconds: float) -> Message:
        """Give the task to a process and wait; kills it when it overstays."""
        if running.ended:
            return Message("died")
        child, message = self._pool.take(), None
        running.on(child)
        try:
            message = _answer_of(child, task, payload, seconds)
        finally:
            self._pool.give_back(child, healthy=message is not None and message.kind != "died")
        if message is None:
            log.warning("the process computing %s overstayed and was killed", task)
            return Message("late")
        if message.kind == "died" and not running.ended:
            log.warning("the process computing %s died", task)
        return message


class _Running:
    """The process of a task, which may be ended from another thread before or after the task has begun."""

    def __init__(self) -> None:
        self._child: SolverProcess | None = None
        self._lock = threading.Lock()
        self.ended = False

    def on(self, child: SolverProcess) -> None:
        """The task runs there."""
        with self._lock:
            self._child = child
            if self.ended:
                child.abort()

    def end(self) -> None:
        """Nobody waits for the task any more."""
        with self._lock:
            self.ended = True
            if self._child is not None:
                self._child.abort()


def _answer_of(child: SolverProcess, task: str, payload: dict[str, Any], seconds: float) -> Message | None:
    """The last thing that a process says of a task; None where it says nothing in time."""
    if child.solves == 0 and child.next_message(START_S) != Message("ready"):
        return Message("died")
    child.solve(task, payload, seconds)
    end_s = time.monotonic() + seconds + GRACE_S
    while True:
        message = child.next_message(max(end_s - time.monotonic(), 0.0))
        if message is None or message.kind != "progress":
            return message


def _outcome(message: Message) -> str:
    return "crashed" if message.kind == "died" else message.kind


def _read(message: Message) -> bytes:
    if message.kind == "done":
        return message.content
    if message.kind == "late":
        raise TooLong
    if message.kind == "refused":
        raise AnswerRefused(ProblemDetails.model_validate_json(message.content))
    if message.kind == "died":
        raise SolverCrashed("the process that computed this died", hint="the same question would likely end the same")
    raise AnswerRefused(plain_problem(500, "a mistake of the service; its log has the details"))
