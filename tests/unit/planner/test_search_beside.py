"""Parts of one question worked out beside each other give the same answer and leave no child."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.model.load import load_model
from planner.question.problem import Problem, Workload
from planner.search import across_backends, find
from planner.search.beside import Beside, can_fork
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster

PLANS = """
import resource
from planner.model.load import load_model
from planner.question.problem import Constraints, Objective, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster

QUESTIONS = ((("any",), "recommended"), (("torchtitan",), "recommended"), (("native", "megatron"), "fastest"))
for backends, prefer in QUESTIONS:
    problem = Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", 16),
        workload=Workload(global_batch_size=64, sequence_length=8192),
        constraints=Constraints(backends=backends),
        objective=Objective(prefer=prefer),
    )
    alone, beside = (find_plan(problem, SearchOptions(processes=count)) for count in (1, 2))

    assert alone.plan_id == beside.plan_id
    assert len(beside.alternatives) == 3
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > 0.0, "nothing was forked"
"""
CANCELLED = """
import os
from planner.model.load import load_model
from planner.question.problem import Constraints, Objective, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster

problem = Problem(
    model=load_model("llama-3.1-8b"),
    cluster=load_cluster("dgx-h100", 16),
    workload=Workload(global_batch_size=64, sequence_length=8192),
    constraints=Constraints(backends=("any",)),
    objective=Objective(prefer="recommended"),
)

def has_children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True

def cancel(state):
    if has_children():
        raise KeyboardInterrupt

try:
    find_plan(problem, SearchOptions(processes=2), cancel)
except KeyboardInterrupt:
    assert not has_children()
else:
    raise AssertionError("nothing was forked")
"""


def _children() -> set[str]:
    return {child for each in Path("/proc/self/task").glob("*/children") for child in each.read_text().split()}


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    """Other tests of this process may have children of their own."""
    before = _children()
    yield
    assert _children() <= before


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("script", [PLANS, CANCELLED], ids=["plans", "cancelled"])
def test_plans_are_the_same_and_a_cancelled_search_leaves_no_child(script: str) -> None:
    # A process of its own: that of the tests has threads of other tests.
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr


def test_a_child_gives_the_answer() -> None:
    beside = Beside(os.getpid, forks=True)
    assert beside.answer not in (os.getpid(), 0)
    assert beside.answer == beside.answer


def test_without_a_child_the_answer_is_there_at_once() -> None:
    assert Beside(os.getpid, forks=False).answer == os.getpid()


def test_the_parent_does_what_a_dead_child_left() -> None:
    parent = os.getpid()

    def part() -> int:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return 7

    assert Beside(part, forks=True).answer == 7


def test_an_error_of_the_part_is_met_by_the_parent() -> None:
    def part() -> int:
        raise ValueError("of the part")

    beside = Beside(part, forks=True)
    with pytest.raises(ValueError, match="of the part"):
        _ = beside.answer


def test_a_child_that_nobody_waits_for_is_ended() -> None:
    beside = Beside(lambda: time.sleep(60), forks=True)
    start_s = time.monotonic()
    beside.stop()
    beside.stop()
    assert time.monotonic() - start_s < 30


def test_one_process_and_threads_do_not_fork() -> None:
    assert not can_fork(1)
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        assert not can_fork(2)
    finally:
        done.set()
        other.join()


def test_time_that_one_part_took_is_not_left_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process the parts follow each other, under one time limit."""
    problem = Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", 16),
        workload=Workload(global_batch_size=64, sequence_length=8192),
    )
    searched, others, ends_s = across_backends.unrestricted_entry, find._others, []

    def slow_others(*asked: Any) -> Any:
        time.sleep(2.0)
        return others(*asked)

    def noted(asked: Problem, options: SearchOptions, below_s: float) -> Any:
        assert options.time_limit_s is not None
        ends_s.append(time.monotonic() + options.time_limit_s)
        return searched(asked, options, below_s)

    monkeypatch.setattr(find, "_others", slow_others)
    monkeypatch.setattr(find, "unrestricted_entry", noted)
    started_s = time.monotonic()
    find.find_plan(problem, SearchOptions(time_limit_s=60.0))
    assert ends_s[0] - started_s == pytest.approx(60.0, abs=1.0)
