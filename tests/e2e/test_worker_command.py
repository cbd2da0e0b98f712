"""``meshwright worker`` and the worker that ``serve`` brings along, as processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api.jobs.dbos_board import DbosBoard
from api.worker.embedded import open_board, start_embedded_worker
from planner.store import open_store
from tests.job_requests import infeasible_request, small_request
from tests.job_workers import PATIENCE_S, REPOSITORY, ended, quick_settings, wait_for

# The command as `meshwright` registers it, alone: the whole command line has other owners.
COMMAND = """
import sys, typer
from api.commands import worker
from planner.cli.failure import failure_of
app = typer.Typer()
app.callback()(lambda: None)
worker.register(app)
try:
    code = app(sys.argv[1:], standalone_mode=False)
except Exception as error:
    failure = failure_of(error, sys.argv[1:])
    print(error, file=sys.stderr)
    code = failure.exit_code
assert "--help" not in sys.argv or not {"dbos", "sqlalchemy"} & set(sys.modules)
sys.exit(code)
"""


def command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "worker", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_worker_answers_jobs_until_it_is_told_to_end(tmp_path: Path) -> None:
    url, json_lines = f"sqlite:///{tmp_path / 'plans.db'}", ("--log-format", "json")
    with DbosBoard.open(url) as board, command("--database", url, "--concurrency", "2", *json_lines) as worker:
        jobs = [board.submit(request, key=None, owner="o").id for request in (small_request(), infeasible_request())]
        plan, infeasible = ended(board, jobs, PATIENCE_S)
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=PATIENCE_S)
        assert worker.returncode == 0, said
    assert "Traceback" not in said
    lines = [json.loads(line) for line in said.splitlines()]
    assert {line["job_id"] for line in lines if "result_kind" in line} == set(jobs)
    assert (plan.status, plan.result_kind) == ("succeeded", "plan")
    assert (infeasible.status, infeasible.result_kind, infeasible.result_plan_id) == ("succeeded", "infeasible", None)
    assert infeasible.error is not None
    assert infeasible.error.slug == "no-feasible-plan"
    with open_store(url) as store:
        assert plan.result_plan_id is not None
        assert store.get_plan(plan.result_plan_id).problem == small_request().problem


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--concurrency", "0"], "--concurrency"),
        (["--memory-limit", "0.1"], "--memory-limit"),
        (["--memory-limit", "nan"], "--memory-limit"),
        (["--lease", "0.5"], "--lease"),
        (["--drain", "-1"], "--drain"),
        (["--database", "mysql://x/y"], "--database"),
    ],
)
def test_a_bad_flag_is_one_clear_error(arguments: list[str], says: str) -> None:
    with command(*arguments) as worker:
        _, said = worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == 2, said
    assert f"--> {says}" in said
    assert "Traceback" not in said


def test_help_loads_no_database() -> None:
    with command("--help") as worker:
        shown, said = worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == 0, said
    assert "--concurrency" in shown


@pytest.mark.slow
def test_an_embedded_worker_is_started_again_when_it_dies(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'plans.db'}"
    with DbosBoard.open(url) as board:
        worker = start_embedded_worker(quick_settings(url))
        try:
            first = worker.process_id
            assert first is not None
            os.kill(first, signal.SIGKILL)
            job = board.submit(small_request(), key=None, owner="o").id
            (record,) = ended(board, [job], PATIENCE_S)
            assert record.status == "succeeded"
            assert worker.process_id not in {None, first}
        finally:
            worker.stop()
        assert worker.process_id is None


@pytest.mark.slow
def test_a_board_alone_takes_jobs_and_answers_none(tmp_path: Path) -> None:
    with open_board(f"sqlite:///{tmp_path / 'plans.db'}", concurrency=0) as board:
        assert board.submit(small_request(), key=None, owner="o").status == "queued"


PARENT = """
import json, sys, time
from api.worker.embedded import start_embedded_worker
from api.worker.settings import WorkerSettings
print(start_embedded_worker(WorkerSettings(**json.loads(sys.argv[1]))).process_id, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_an_embedded_worker_ends_when_its_server_is_killed(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"database_url": f"sqlite:///{tmp_path / 'plans.db'}", "drain_s": 0.5}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, json.dumps(settings)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        worker = int(server.stdout.readline())
        server.kill()
    wait_for(lambda: not alive(worker), PATIENCE_S, "the worker has ended too")


def alive(process: int) -> bool:
    """Whether a process runs; one that ended and was never waited for does not."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
