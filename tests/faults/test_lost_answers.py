"""An answer of the database is lost on its way: what it had done already is found, and nobody waits for it for ever."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from api.jobs.dbos_board import DbosBoard
from api.jobs.system_database import make_system_engine, status_table, system_database_url
from api.planning.key_releases import KeyReleases
from api.telemetry.metrics import Metrics
from planner.store import open_store
from tests import faulty_solver
from tests.job_requests import faulty_request, small_request
from tests.job_workers import PATIENCE_S, WorkerProcess, ended, quick_settings, wait_for

FAULTY = "tests.faulty_solver"


def give(engine: Engine, job: str, of_the_worker_of: str) -> bool:
    """Give a waiting job to a worker without its knowledge, as when the answer to its own asking never arrived."""
    table = status_table(engine)
    worker = f"(SELECT executor_id FROM {table} WHERE workflow_uuid = :other)"
    with engine.begin() as connection:
        done = connection.execute(
            text(
                f"UPDATE {table} SET status = 'PENDING', executor_id = {worker}, owner_xid = 'lost'"
                " WHERE workflow_uuid = :job AND status = 'ENQUEUED'"
            ),
            {"job": job, "other": of_the_worker_of},
        )
    return done.rowcount == 1


@pytest.mark.slow
def test_a_job_that_its_living_worker_does_not_know_runs_again(database_url: str) -> None:
    engine = make_system_engine(system_database_url(database_url), 1)
    settings = quick_settings(database_url, solver_module=FAULTY)
    with DbosBoard.open(database_url) as board, WorkerProcess(settings):
        busy = board.submit(faulty_request(faulty_solver.SLOW), key=None, owner="o").id
        wait_for(lambda: board.get(busy).progress.phase == "searching", PATIENCE_S, "the worker is busy")
        lost = board.submit(small_request(16), key=None, owner="o").id
        assert give(engine, lost, busy)
        wait_for(lambda: board.get(lost).status == "queued", PATIENCE_S, "it is found and put back")
        assert board.get(busy).status == "running", "what does run here goes on"
        board.cancel(busy)
        records = ended(board, [busy, lost], PATIENCE_S)
    engine.dispose()
    assert [record.status for record in records] == ["cancelled", "succeeded"]
    assert [record.attempts for record in records] == [1, 1]


@pytest.mark.slow
def test_the_refused_writes_of_a_stale_worker_are_counted(database_url: str) -> None:
    settings = quick_settings(database_url, solver_module=FAULTY)
    with DbosBoard.open(database_url) as board, WorkerProcess(settings) as stale:
        job = board.submit(faulty_request(faulty_solver.SLOW), key=None, owner="o").id
        wait_for(lambda: board.get(job).progress.phase == "searching", PATIENCE_S, "it searches")
        assert list(board.counts().refused_of_worker.values()) == [0]
        stale.stop()
        with WorkerProcess(settings):
            wait_for(lambda: board.get(job).attempts == 2, PATIENCE_S, "another has it")
            stale.go_on()
            wait_for(
                lambda: sorted(board.counts().refused_of_worker.values()) == [0, 1], PATIENCE_S, "one write was refused"
            )
            metrics = Metrics()
            metrics.show_queue(board.counts())
            board.cancel(job)
            (record,) = ended(board, [job], PATIENCE_S)
    page = metrics.page().decode()
    assert "meshwright_workers 2.0" in page
    counted = [line.rpartition(" ")[2] for line in page.splitlines() if line.startswith("meshwright_stale_writes")]
    assert sorted(counted) == ["0.0", "1.0"]
    assert (record.status, record.attempts) == ("cancelled", 2)


def test_a_key_whose_request_failed_is_free_when_the_database_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.store.engine.BUSY_TIMEOUT_MS", 20)
    path = tmp_path / "plans.db"
    with open_store(str(path)) as store:
        records = store.service()
        assert records.claim_key("ann", "k", "sha") is None
        assert records.claim_key("ann", "answered", "sha") is None
        records.answer_key("ann", "answered", job_id="job-1")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        async def fail_and_wait() -> None:
            releases = KeyReleases(records)
            await releases.release("ann", "k")
            await releases.release("ann", "answered")
            task = asyncio.create_task(releases.run())
            taken = await asyncio.to_thread(records.keyed_request, "ann", "k")
            assert taken is not None, "the database was away"
            other.execute("ROLLBACK")
            end_s = time.monotonic() + PATIENCE_S
            while await asyncio.to_thread(records.keyed_request, "ann", "k") is not None:
                assert time.monotonic() < end_s, "the key was never released"
                await asyncio.sleep(0.05)
            task.cancel()

        asyncio.run(fail_and_wait())
        other.close()
        assert records.claim_key("ann", "k", "sha") is None, "it can be taken again"
        kept = records.keyed_request("ann", "answered")
        assert kept is not None
        assert kept.job_id == "job-1", "an answer is never forgotten this way"
