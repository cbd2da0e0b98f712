"""Who computes while a client waits?  A few warm processes, each with one task at a time and a hard end.

A process that dies or overstays is replaced; the others and the service never notice.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from api.errors import ServiceBusy, SolverCrashed
from api.http.problem_responses import AnswerRefused
from api.solving.child import serve
from api.telemetry.metrics import Metrics
from api.telemetry.tracing import span
from api.wire.problem_details import ProblemDetails, plain_problem

GRACE_S = 2.0
"""A task looks at its clock now and then; after this much more it is killed."""
START_S = 60.0

log = logging.getLogger("meshwright.api")


class TooLong(Exception):  # an event that the caller expects
    """The answer did not come within the time given."""


class SolverPool:
    """``size`` processes; ``run`` gives a task to the next free one."""

    def __init__(self, size: int, memory_bytes: int, metrics: Metrics) -> None:
        self._slots = [_Slot(memory_bytes) for _ in range(size)]
        self._free: asyncio.Queue[_Slot] = asyncio.Queue()
        self._threads = ThreadPoolExecutor(max_workers=size, thread_name_prefix="solver")
        self._metrics = metrics

    async def start(self) -> None:
        """Start every process; returns without waiting until they are warm."""
        for slot in self._slots:
            slot.start()
            self._free.put_nowait(slot)

    async def stop(self) -> None:
        """End every process."""
        for slot in self._slots:
            slot.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, task: str, payload: Mapping[str, Any], limit_s: float) -> bytes:
        """The answer of a task.

        Raises TooLong after ``limit_s`` (waiting for a process included), AnswerRefused with the task's own problem,
        SolverCrashed when the process died, ServiceBusy when no process became free.
        """
        with span("solve", **{"meshwright.task": task}) as opened:
            outcome, answer = await self._outcome(task, payload, limit_s)
            if opened is not None:
                opened.set_attribute("meshwright.outcome", outcome)
        return _read(outcome, answer)

    async def _outcome(self, task: str, payload: Mapping[str, Any], limit_s: float) -> tuple[str, bytes]:
        start_s = time.monotonic()
        try:
            slot = await asyncio.wait_for(self._free.get(), limit_s)
        except TimeoutError:
            self._metrics.observe_solve(task, "no-process", limit_s)
            raise ServiceBusy("every process computes", hint="try again", retry_after_s=5) from None
        left_s = max(limit_s - (time.monotonic() - start_s), 0.1)
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._threads, slot.call, task, dict(payload), left_s)
        # The process is busy until its answer is here, also when the client is gone.
        call.add_done_callback(lambda _done: self._free.put_nowait(slot))
        outcome, answer = await asyncio.shield(call)
        self._metrics.observe_solve(task, outcome, time.monotonic() - start_s)
        return outcome, answer


def _read(outcome: str, answer: bytes) -> bytes:
    if outcome == "done":
        return answer
    if outcome == "late":
        raise TooLong
    if outcome == "refused":
        raise AnswerRefused(ProblemDetails.model_validate_json(answer))
    if outcome == "crashed":
        raise SolverCrashed("the process that computed this died", hint="the same question would likely end the same")
    raise AnswerRefused(plain_problem(500, "a mistake of the service; its log has the details"))


class _Slot:
    """One process and the pipe to it; used by one thread at a time."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._warm = False
        self._closed = False

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        self.kill()

    def start(self) -> None:
        """Start the process; it warms up by itself."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self._memory_bytes), daemon=True)
        self._process.start()
        theirs.close()
        self._warm = False

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def call(self, task: str, payload: dict[str, Any], seconds: float) -> tuple[str, bytes]:
        """Give the task to the process and wait; kills it when it overstays."""
        try:
            pipe = self._ready()
            pipe.send((task, payload, seconds))
            if pipe.poll(seconds + GRACE_S):
                answer: tuple[str, bytes] = pipe.recv()
                return answer
        except (EOFError, OSError):
            log.warning("the process computing %s died", task)
            self._replace()
            return "crashed", b""
        log.warning("the process computing %s overstayed and was killed", task)
        self._replace()
        return "late", b""

    def _ready(self) -> Connection:
        """The pipe of a process that has finished loading."""
        if self._pipe is None:
            self.start()
        pipe = self._pipe
        if pipe is None:
            raise EOFError
        if not self._warm:
            if not pipe.poll(START_S):
                raise EOFError
            pipe.recv()
            self._warm = True
        return pipe

    def _replace(self) -> None:
        self.kill()
        if not self._closed:
            self.start()
