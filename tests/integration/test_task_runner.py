"""Processes that compute while a client waits: late, dead, mistaken, or told to end."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from api.errors import SolverCrashed
from api.http.problem_responses import AnswerRefused
from api.solving.process import SolverProcess
from api.solving.task_runner import TaskRunner, TooLong
from api.telemetry.metrics import Metrics
from tests.job_workers import wait_for

MEMORY_BYTES = 8 * 2**30
T = TypeVar("T")


def with_one_process(ask: Callable[[TaskRunner, SolverProcess], Awaitable[T]]) -> T:
    """What ``ask`` gives of a runner, and of its only process before it was asked."""

    async def asked() -> T:
        runner = TaskRunner(1, MEMORY_BYTES, Metrics())
        await runner.start()
        (child,) = runner._pool._idle
        try:
            return await ask(runner, child)
        finally:
            await runner.stop()

    return asyncio.run(asked())


async def mistaken(runner: TaskRunner) -> int:
    """The status of a task without what it needs: a mistake of ours."""
    with pytest.raises(AnswerRefused) as caught:
        await runner.run("report", {}, 60)
    return caught.value.problem.status


def test_a_mistake_is_told_to_the_log_and_ends_no_process(caplog: pytest.LogCaptureFixture) -> None:
    async def ask(runner: TaskRunner, child: SolverProcess) -> tuple[int, int]:
        return await mistaken(runner) + await mistaken(runner), child.solves

    with caplog.at_level(logging.WARNING, "meshwright.solving"):
        assert with_one_process(ask) == (1000, 2)
    assert [record.getMessage().count("KeyError: 'plan'") for record in caplog.records] == [1, 1]


def test_a_process_that_overstays_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.solving.task_runner.GRACE_S", 0.1)

    async def ask(runner: TaskRunner, child: SolverProcess) -> int:
        assert await mistaken(runner) == 500
        child.process.send_signal(signal.SIGSTOP)
        with pytest.raises(TooLong):
            await runner.run("report", {}, 0.2)
        assert child.process.wait(300) == -signal.SIGKILL
        return await mistaken(runner)

    assert with_one_process(ask) == 500


def test_what_nobody_waits_for_is_ended_and_makes_room() -> None:
    async def ask(runner: TaskRunner, child: SolverProcess) -> int:
        assert await mistaken(runner) == 500
        child.process.send_signal(signal.SIGSTOP)
        running = asyncio.ensure_future(runner.run("report", {}, 60))
        await asyncio.to_thread(wait_for, lambda: child.solves == 2, 30, "it computes")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert child.process.wait(300) == -signal.SIGKILL
        return await mistaken(runner)

    assert with_one_process(ask) == 500


def test_the_end_of_the_service_ends_what_computes() -> None:
    async def ask(runner: TaskRunner, child: SolverProcess) -> float:
        assert await mistaken(runner) == 500
        child.process.send_signal(signal.SIGSTOP)
        running = asyncio.ensure_future(runner.run("report", {}, 60))
        await asyncio.to_thread(wait_for, lambda: child.solves == 2, 30, "it computes")
        start_s = time.monotonic()
        await runner.stop()
        with pytest.raises(SolverCrashed):
            await running
        return time.monotonic() - start_s

    assert with_one_process(ask) < 10


def test_a_folder_of_the_same_name_where_the_service_starts_is_none_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "__init__.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)

    async def ask(runner: TaskRunner, _: SolverProcess) -> int:
        return await mistaken(runner)

    assert with_one_process(ask) == 500
