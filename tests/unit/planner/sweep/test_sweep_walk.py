"""The walk: the database first, the rest once each, every plan checked before it is stored."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from planner.answers.sweep.serial import Serial
from planner.answers.sweep.solving import solve
from planner.answers.sweep.table import lines, summary
from planner.answers.sweep.task import Outcome, Task
from planner.answers.sweep.walk import answers
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.store import open_store
from planner.store.repository import Store
from tests.sweep_cells import QUICK, cells_of, small_question, sweep


class Counted(Serial):
    """The serial executor, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        self.asked += [task.key for task in tasks]
        yield from super().run(tasks)


class Lying(Serial):
    """Answers with plans that are faster than they can be."""

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        for task in tasks:
            plan = Plan.model_validate_json(solve(task).plan or "")
            faster = plan.model_copy(update={"step_time_s": plan.step_time_s / 2})
            yield Outcome(task.key, "planned", plan=faster.canonical_json(), wall_s=0.1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'plans.db'}") as opened:
        yield opened


def problem_of(question_index: int = 0) -> Problem:
    problem = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,)))[question_index].problem
    assert problem is not None
    return problem


def test_each_cell_is_planned_infeasible_or_refused_with_its_reason(store: Store) -> None:
    found = sweep(cells_of(small_question()), store, Serial())
    assert [answer.kind for answer in found] == ["planned", "refused", "planned", "infeasible", "refused", "planned"]
    assert found[3].binding == "device memory"
    assert found[3].what
    assert found[3].relaxations
    rows = lines(found)
    assert [row["fits"] for row in rows] == [True, None, True, False, None, True]
    assert rows[0]["plan_id"] in {record.plan_id for record in store.list_plans()}
    assert summary(lines(found))["planned"] == len(store.list_plans()) == 3


def test_the_plans_are_those_of_a_plain_search(store: Store) -> None:
    cells = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8, 16)))
    for answer in sweep(cells, store, Serial()):
        assert answer.cell.problem is not None
        assert answer.figures is not None
        assert answer.figures.plan_id == find_plan(answer.cell.problem, QUICK).plan_id


def test_what_is_stored_is_not_searched_again(store: Store) -> None:
    cells = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8, 16)))
    first = sweep(cells, store, Serial())
    again = Counted()
    second = sweep(cells, store, again)
    assert again.asked == []
    assert [answer.source for answer in second] == ["stored", "stored"]
    assert [answer.figures for answer in second] == [answer.figures for answer in first]


def test_a_sweep_that_was_cut_goes_on_with_the_rest(store: Store) -> None:
    cells = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8, 16), global_batch_sizes=(32, 64)))
    with closing(answers(cells, QUICK, store, Serial())) as walk:
        done = {next(walk).cell.index}
    rest = Counted()
    found = sweep(cells, store, rest)
    assert rest.asked == [cell.problem.problem_id for cell in cells if cell.problem and cell.index not in done]
    assert [answer.source for answer in found] == ["stored", "searched", "searched", "searched"]


def test_equal_questions_are_searched_once(store: Store) -> None:
    cells = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,)))
    twin = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,), global_batch_sizes=(64,)))
    counted = Counted()
    found = list(answers((*cells, *twin), QUICK, store, counted))
    assert len(counted.asked) == 1
    assert len(found) == 2
    assert found[0].figures == found[1].figures


def test_a_plan_that_does_not_hold_is_no_plan(store: Store) -> None:
    (answer,) = sweep(cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,))), store, Lying())
    assert answer.kind == "failed"
    assert "does not hold" in (answer.what or "")
    assert store.list_plans() == ()


@pytest.mark.parametrize(("searched_s", "source"), [(2.0, "searched"), (4.0, "stored"), (9.0, "stored")])
def test_an_unproved_plan_is_taken_when_it_was_searched_long_enough(
    store: Store, searched_s: float, source: str
) -> None:
    proved = find_plan(problem_of(), QUICK)
    bound_s = proved.step_time_s * 0.9
    unproved = proved.model_copy(
        update={"status": "feasible", "lower_bound_s": bound_s, "gap": 1 - bound_s / proved.step_time_s}
    )
    store.save_plan(unproved, searched_s)
    cells = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,)))
    (answer,) = sweep(cells, store, Serial(), SearchOptions(top_k=0, time_limit_s=4.0))
    assert answer.source == source


def test_an_unproved_plan_is_not_enough_without_a_time_limit(store: Store) -> None:
    proved = find_plan(problem_of(), QUICK)
    store.save_plan(proved.model_copy(update={"status": "feasible"}), 1e6)
    cells = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,)))
    (answer,) = sweep(cells, store, Serial())
    assert (answer.source, answer.figures.status if answer.figures else "") == ("searched", "optimal")


def test_a_precision_that_a_device_lacks_is_a_refused_cell(store: Store) -> None:
    question = small_question(models=("llama-3.2-1b",), device_counts=(8,))
    question = question.model_copy(update={"clusters": ("dgx-a100-80g", "dgx-h100"), "precision": "fp8"})
    without, with_fp8 = sweep(cells_of(question), store, Serial())
    assert without.kind == "refused"
    assert "fp8" in (without.what or "")
    assert with_fp8.kind == "planned"


def test_a_time_limit_that_is_too_short_leaves_a_cell_undecided(store: Store) -> None:
    cells = cells_of(small_question(models=("deepseek-v3",), device_counts=(1024,), global_batch_sizes=(2048,)))
    (answer,) = sweep(cells, store, Serial(), SearchOptions(top_k=0, time_limit_s=1e-6))
    assert answer.kind == "undecided"
    assert lines([answer])[0]["fits"] is None
