"""Processes of one machine answer as one process does, and outlive each other."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from contextlib import closing

import pytest

from planner.answers.sweep.executor import executor
from planner.answers.sweep.processes import Processes
from planner.answers.sweep.serial import Serial
from planner.answers.sweep.task import MOST_TRIES, Outcome
from planner.errors import DocumentInvalid
from tests.sweep_cells import cells_of, small_question, tasks_of

QUESTION = small_question(device_counts=(4, 16), sequence_lengths=(1024, 2048))


def content(outcomes: list[Outcome]) -> dict[str, tuple[object, ...]]:
    """Outcomes without who and how long."""
    return {each.key: (each.kind, each.plan, each.what, each.hint, each.binding) for each in outcomes}


def test_processes_give_the_very_plans_of_one_process() -> None:
    tasks = tasks_of(cells_of(QUESTION))
    alone, together = list(Serial().run(tasks)), list(Processes(2).run(tasks))
    assert content(together) == content(alone)
    assert len({each.worker for each in together}) == 2
    assert sum(each.plan is not None for each in alone) == 6


def test_a_task_whose_process_is_killed_runs_again() -> None:
    tasks = tasks_of(cells_of(QUESTION))
    outcomes, killed = [], 0
    with closing(Processes(2).run(tasks)) as found:
        for outcome in found:
            outcomes.append(outcome)
            process = re.fullmatch(r"process (\d+)", outcome.worker)
            if killed < 2 and process is not None:
                os.kill(int(process[1]), signal.SIGKILL)
                killed += 1
    assert killed == 2
    assert content(outcomes) == content(list(Serial().run(tasks)))


def test_a_task_that_kills_every_process_is_given_up() -> None:
    (task,) = tasks_of(cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,))))
    over = threading.Event()

    def kill_all() -> None:
        # A process needs much longer than this to start.
        while not over.wait(0.02):
            for child in multiprocessing.active_children():
                child.kill()

    killer = threading.Thread(target=kill_all)
    killer.start()
    try:
        (outcome,) = Processes(1).run([task])
    finally:
        over.set()
        killer.join()
    assert outcome.kind == "failed"
    assert f"died {MOST_TRIES} times" in outcome.what


def test_closing_early_ends_every_process() -> None:
    found = Processes(2).run(tasks_of(cells_of(QUESTION)))
    next(found)
    assert multiprocessing.active_children()
    found.close()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("name", "workers", "where"),
    [("threads", None, "--executor"), ("serial", 0, "--workers"), ("ray:", 1, "--executor")],
)
def test_an_executor_that_there_is_not(name: str, workers: int | None, where: str) -> None:
    with pytest.raises(DocumentInvalid) as raised:
        executor(name, workers)
    assert raised.value.where == where
    assert raised.value.hint
