"""Jobs when a process dies: real workers, really killed, stopped and cut off, on both databases."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.errors import QueueFull
from api.jobs.dbos_board import DbosBoard
from api.jobs.queue_gate import QueueLimits
from api.wire.jobs import ENDED, JobRecord
from planner.store import open_store
from planner.store.errors import StoreUnavailable
from planner.store.repository import Store
from tests import faulty_solver
from tests.job_requests import faulty_request, long_request, small_request
from tests.job_workers import PATIENCE_S, WorkerProcess, ended, quick_settings, wait_for
from tests.postgres_server import PostgresServer, server_programs

pytestmark = pytest.mark.slow
FAULTY = "tests.faulty_solver"
LEASE_AND_MORE_S = 60.0
SOON_S = 15.0
"""Within so many seconds a cancelled search has ended."""
"""The promise: a dead worker's job runs again within 60 s.  The lease in these tests is two seconds."""


@pytest.fixture
def board(database_url: str) -> Iterator[DbosBoard]:
    """A board on each database in turn."""
    with DbosBoard.open(database_url) as opened:
        yield opened


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """For faults that no database takes part in."""
    return f"sqlite:///{tmp_path / 'plans.db'}"


@pytest.fixture
def sqlite_board(sqlite_url: str) -> Iterator[DbosBoard]:
    """A board on SQLite."""
    with DbosBoard.open(sqlite_url) as opened:
        yield opened


def assert_one_result_each(records: list[JobRecord], store: Store) -> None:
    """Every job succeeded with a plan that is there, and no plan is there that no job has."""
    assert {record.status for record in records} == {"succeeded"}
    plans = {record.result_plan_id for record in records}
    assert plans == {plan.plan_id for plan in store.list_plans(limit=1000)}
    assert len(plans) == len(records)


def running(board: DbosBoard, job: str) -> bool:
    return board.get(job).status == "running"


def searching(board: DbosBoard, job: str) -> bool:
    return running(board, job) and board.get(job).progress.phase == "searching"


def test_jobs_of_killed_workers_run_again_and_have_one_result_each(board: DbosBoard, database_url: str) -> None:
    draw = random.Random(0)
    settings = quick_settings(database_url, concurrency=2, solver_module=FAULTY)
    jobs = [board.submit(faulty_request(faulty_solver.PAUSE, 4 * n), key=None, owner="o").id for n in range(1, 13)]
    for _ in range(5):
        with WorkerProcess(settings) as worker:
            wait_for(lambda: board.counts().running > 0, PATIENCE_S, "a job runs")
            time.sleep(draw.uniform(0.0, 0.8))
            worker.kill()
    with WorkerProcess(settings):
        records = ended(board, jobs, PATIENCE_S)
    lost = [record for record in records if record.status == "failed"]
    # Three dead workers in a row are a poison job by definition; five kills can do that to some, never silently.
    assert {record.error.slug for record in lost if record.error} <= {"worker-lost"}
    assert len(lost) <= 4
    with open_store(database_url) as store:
        assert_one_result_each([record for record in records if record.status != "failed"], store)


@pytest.mark.postgres
def test_a_dead_workers_job_runs_elsewhere_within_a_minute(postgres_url: str) -> None:
    settings = quick_settings(postgres_url, solver_module=FAULTY)
    with DbosBoard.open(postgres_url) as board:
        job = board.submit(faulty_request(faulty_solver.SLOW), key=None, owner="o").id
        with WorkerProcess(settings) as first:
            wait_for(lambda: starts(board, job) == 1, PATIENCE_S, "it runs")
            first.kill()
        with WorkerProcess(settings):
            wait_for(lambda: starts(board, job) == 2, LEASE_AND_MORE_S, "it runs again")
            wait_for(lambda: board.events(job)[-1].progress.phase == "searching", PATIENCE_S, "it searches")
            assert board.get(job).attempts == 2
            board.cancel(job)
            (record,) = ended(board, [job], PATIENCE_S)
        assert (record.status, record.result_kind) == ("cancelled", "plan")
        sequence = [event.seq for event in board.events(job)]
        assert sequence == list(range(1, len(sequence) + 1))


def starts(board: DbosBoard, job: str) -> int:
    """How often the job was started, as its events tell."""
    return sum(event.progress.phase == "starting" for event in board.events(job))


def test_a_stopped_worker_that_comes_back_writes_no_second_result(board: DbosBoard, database_url: str) -> None:
    settings = quick_settings(database_url, solver_module=FAULTY)
    job = board.submit(faulty_request(faulty_solver.PAUSE), key=None, owner="o").id
    with WorkerProcess(settings) as stale:
        wait_for(lambda: running(board, job), PATIENCE_S, "it runs")
        stale.stop()
        with WorkerProcess(settings):
            (record,) = ended(board, [job], LEASE_AND_MORE_S)
            events = board.events(job)
            stale.go_on()
            # It still serves: it has noticed, and shows itself again.
            others = [board.submit(small_request(4 * n), key=None, owner="o").id for n in range(2, 6)]
            ended(board, others, PATIENCE_S)
            time.sleep(1.0)
    assert (record.status, record.attempts) == ("succeeded", 2)
    assert board.get(job) == record
    assert board.events(job) == events


@pytest.mark.parametrize(
    ("fault", "slug", "attempts"),
    [
        (faulty_solver.SEGFAULT, "solver-crashed", 3),
        (faulty_solver.EXIT, "solver-crashed", 3),
        (faulty_solver.BABBLE, "solver-crashed", 3),
        (faulty_solver.RAISE, "solver-crashed", 3),
        (faulty_solver.UNREAL, "document-invalid", 1),
        (faulty_solver.MEMORY, "solver-out-of-memory", 3),
        (faulty_solver.KILLED, "solver-out-of-memory", 3),
        (faulty_solver.LIE, "solver-inconsistent", 1),
        (faulty_solver.LIE_ABOUT_QUESTION, "solver-inconsistent", 1),
        (faulty_solver.HANG, "budget-spent", 1),
    ],
)
def test_a_solver_that_misbehaves_fails_its_own_job_only(
    shared_worker: DbosBoard, fault: int, slug: str, attempts: int
) -> None:
    job = shared_worker.submit(faulty_request(fault, 8 + 4 * fault), key=None, owner="o").id
    good = shared_worker.submit(small_request(400 + 4 * fault), key=None, owner="o").id
    bad_record, good_record = ended(shared_worker, [job, good], PATIENCE_S)
    assert (bad_record.status, bad_record.result_kind) == ("failed", "none")
    assert bad_record.error is not None
    assert (bad_record.error.slug, bad_record.attempts) == (slug, attempts)
    assert good_record.status == "succeeded"


def test_a_solver_that_crashes_once_is_tried_again(shared_worker: DbosBoard) -> None:
    job = shared_worker.submit(faulty_request(faulty_solver.ONCE, 640), key=None, owner="o").id
    (record,) = ended(shared_worker, [job], PATIENCE_S)
    assert (record.status, record.attempts) == ("succeeded", 2)


def test_cancelling_keeps_the_best_plan_and_ends_within_seconds(shared_worker: DbosBoard) -> None:
    job = shared_worker.submit(long_request(), key=None, owner="o").id
    wait_for(lambda: shared_worker.get(job).progress.incumbent_s is not None, PATIENCE_S, "it has found a first plan")
    assert shared_worker.cancel(job).cancel_requested
    (record,) = ended(shared_worker, [job], SOON_S)
    assert (record.status, record.result_kind) == ("cancelled", "plan")
    assert record.result_plan_id
    assert record.progress.gap is not None
    assert record.progress.gap > 0


def test_cancelling_a_deaf_solver_ends_it_without_a_plan(shared_worker: DbosBoard) -> None:
    job = shared_worker.submit(faulty_request(faulty_solver.HANG, 720, limited=False), key=None, owner="o").id
    wait_for(lambda: searching(shared_worker, job), PATIENCE_S, "it searches")
    shared_worker.cancel(job)
    (record,) = ended(shared_worker, [job], SOON_S)
    assert (record.status, record.result_kind, record.error) == ("cancelled", "none", None)


@pytest.fixture(scope="module")
def shared_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DbosBoard]:
    """A board with one worker whose solver has faults; on SQLite, because the solver sees no database."""
    folder = tmp_path_factory.mktemp("jobs")
    url = f"sqlite:///{folder / 'plans.db'}"
    once = {faulty_solver.ONCE_FILE: str(folder / "once")}
    settings = quick_settings(url, concurrency=2, solver_module=FAULTY)
    with DbosBoard.open(url) as opened, WorkerProcess(settings, once):
        yield opened


def test_a_job_that_kills_every_worker_stops_after_three(sqlite_board: DbosBoard, sqlite_url: str) -> None:
    settings = quick_settings(sqlite_url, solver_module=FAULTY)
    poison = sqlite_board.submit(faulty_request(faulty_solver.KILL_WORKER), key=None, owner="o").id
    deadline = time.monotonic() + PATIENCE_S
    while sqlite_board.get(poison).status not in ENDED and time.monotonic() < deadline:
        with WorkerProcess(settings) as worker:
            wait_for(
                lambda: worker.process.poll() is not None or sqlite_board.get(poison).status in ENDED,
                PATIENCE_S,
                "it kills its worker",
            )
    record = sqlite_board.get(poison)
    assert record.status == "failed"
    assert record.error is not None
    assert (record.error.slug, record.attempts) == ("worker-lost", 3)


def test_a_draining_worker_gives_back_what_it_cannot_finish(sqlite_board: DbosBoard, sqlite_url: str) -> None:
    settings = quick_settings(sqlite_url, solver_module=FAULTY, drain_s=1.0)
    job = sqlite_board.submit(faulty_request(faulty_solver.SLOW), key=None, owner="o").id
    with WorkerProcess(settings) as worker:
        wait_for(lambda: searching(sqlite_board, job), PATIENCE_S, "it searches")
        worker.drain()
        assert worker.process.wait(PATIENCE_S) == 0
    record = sqlite_board.get(job)
    assert (record.status, record.attempts) == ("queued", 1)
    assert sqlite_board.cancel(job).status == "cancelled"


def test_a_full_queue_refuses_and_stores_nothing(database_url: str) -> None:
    with DbosBoard.open(database_url, QueueLimits(queued=3, queued_of_owner=2)) as board:
        kept = [board.submit(small_request(4 * n), key=None, owner="ann").id for n in (1, 2)]
        with pytest.raises(QueueFull) as own:
            board.submit(small_request(12), key="k", owner="ann")
        assert own.value.retry_after_s
        kept.append(board.submit(small_request(16), key=None, owner="bob").id)
        with pytest.raises(QueueFull):
            board.submit(small_request(20), key=None, owner="carl")
        # What is there already is no new job.
        assert board.submit(small_request(4), key=None, owner="carl").id == kept[0]
        assert board.counts().queued == 3
        board.cancel(kept[0])
        assert board.submit(small_request(12), key="k", owner="ann").status == "queued"


@pytest.mark.postgres
def test_no_acknowledged_job_is_lost_when_postgresql_crashes() -> None:
    programs = server_programs()
    if programs is None:
        pytest.skip("PostgreSQL server programs are not installed")
    server = PostgresServer(programs)
    server.start()
    try:
        url = server.create_database("crashing")
        with DbosBoard.open(url) as board, WorkerProcess(quick_settings(url, lease_s=10.0)):
            jobs = [board.submit(small_request(4 * n), key=None, owner="o").id for n in range(1, 11)]
            server.halt()
            with pytest.raises(StoreUnavailable):
                board.submit(small_request(400), key=None, owner="o")
            server.resume()
            wait_for(lambda: answers(board), PATIENCE_S, "the board answers again")
            records = ended(board, jobs, PATIENCE_S)
            with open_store(url) as store:
                assert_one_result_each(records, store)
    finally:
        server.stop()


def answers(board: DbosBoard) -> bool:
    try:
        board.counts()
    except StoreUnavailable:
        return False
    return True


def test_a_database_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        DbosBoard.open(f"postgresql://ann:secret@/plans?host={tmp_path}")
