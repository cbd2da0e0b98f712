"""Jobs side by side: every failure fails the whole, what failed is printed whole, an interrupt ends all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.checks.jobs import WAITING, Job, jobs_of
from tests.checks.run import run

REPOSITORY = Path(__file__).parents[3]


def job(name: str, script: str, *after: str) -> Job:
    return Job(name, ("sh", "-c", script), after)


def test_a_job_that_passes_is_one_line_and_one_that_fails_is_whole(capfd: pytest.CaptureFixture[str]) -> None:
    passed = run((job("good", "echo first; echo last"), job("bad", "echo one; echo two >&2; exit 7")))
    assert {name: good for name, (good, _) in passed.items()} == {"good": True, "bad": False}
    said = capfd.readouterr().out
    assert "good: passed in" in said
    assert "first" not in said
    assert "last" in said
    assert "bad: FAILED with 7" in said
    assert "one\ntwo\n" in said


def test_a_job_waits_for_what_it_needs_and_fails_with_it(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs = (
        job("third", f"echo third >> {log}", "second"),
        job("second", f"echo second >> {log}", "first"),
        job("first", f"sleep 0.3; echo first >> {log}"),
    )
    assert all(good for good, _ in run(jobs).values())
    assert log.read_text() == "first\nsecond\nthird\n"
    passed = run((job("first", "exit 1"), job("second", f"echo again >> {log}", "first")))
    assert not any(good for good, _ in passed.values())
    assert "again" not in log.read_text()
    assert "second: not started, first failed" in capfd.readouterr().out


def test_a_job_behind_another_starts_when_that_has_failed_too(tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs = (
        Job("second", ("sh", "-c", f"echo second >> {log}"), behind=("first",)),
        job("first", f"sleep 0.3; echo first >> {log}; exit 1"),
    )
    assert {name: good for name, (good, _) in run(jobs).items()} == {"first": False, "second": True}
    assert log.read_text() == "first\nsecond\n"


def test_jobs_run_side_by_side(tmp_path: Path) -> None:
    meet = f"touch {tmp_path}/$0; while [ ! -e {tmp_path}/$1 ]; do sleep 0.05; done"
    jobs = tuple(Job(me, ("sh", "-c", meet, me, other)) for me, other in (("a", "b"), ("b", "a")))
    assert all(good for good, _ in run(jobs).values())


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_everything_below(number: signal.Signals) -> None:
    code = (
        "from tests.checks.run import run; from tests.checks.jobs import Job\n"
        "run((Job('long', ('sh', '-c', 'sleep 600 & echo $!; wait'), yielding=True),))"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code], cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    below = [str(started.pid)]
    while len(below) < 3:
        time.sleep(0.05)
        assert started.poll() is None
        below = [str(started.pid), *_descendants(started.pid)]
    os.kill(started.pid, number)
    assert started.wait(120) != 0
    assert not [each for each in below if Path(f"/proc/{each}").exists() and _alive(each)]


def _descendants(process: int) -> list[str]:
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True, check=False).stdout.split()
    return [*found, *(below for each in found for below in _descendants(int(each)))]


def _alive(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_every_test_is_in_exactly_one_run() -> None:
    waiting, computing = (
        next(each for each in jobs_of("test", 2) if each.name == f"{name} tests") for name in ("waiting", "computing")
    )
    assert {each for each in waiting.command if each.startswith("tests/")} == set(WAITING)
    assert {each.removeprefix("--ignore=") for each in computing.command if each.startswith("--ignore=")} == set(
        WAITING
    )
    assert computing.command[-1] == "tests"
    for path in WAITING:
        assert (REPOSITORY / path).exists(), f"{path} is named in tests/checks/jobs.py and is not there"


def test_prerequisites_are_jobs() -> None:
    for what in ("check", "test"):
        names = {each.name for each in jobs_of(what, 2)}
        assert all(name in names for each in jobs_of(what, 2) for name in (*each.after, *each.behind))
