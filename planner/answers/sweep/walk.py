"""The order of a sweep: what the database knows, then the rest by the executor, stored as it comes.

Cells that ask the same question (the default size of a cluster, named again) are searched once.  The driver checks
every plan from scratch before it stores it, wherever it was computed; a plan that does not hold is an answer
("failed"), never a row of the database.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from planner.answers.sweep.answer import Answer, planned, refused, without_plan
from planner.answers.sweep.executor import Executor
from planner.answers.sweep.grid import Cell
from planner.answers.sweep.task import Outcome, Task
from planner.plan.plan import Plan
from planner.search.options import SearchOptions
from planner.search.recheck import recheck_plan
from solver.check import CheckFailed

if TYPE_CHECKING:
    from planner.store.repository import Store


def answers(
    cells: Sequence[Cell], options: SearchOptions, store: Store, executor: Executor
) -> Generator[Answer, None, None]:
    """One answer for each cell: refused ones, stored ones, then the others as they finish.

    Closing the generator ends the executor's workers.  Raises what the executor and the store raise.
    """
    asked: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.problem is None:
            yield refused(cell)
        else:
            asked.setdefault(cell.problem.problem_id, []).append(cell)
    open_questions: dict[str, list[Cell]] = {}
    for key, same in asked.items():
        plan = stored_plan(store, key, options)
        if plan is None:
            open_questions[key] = same
            continue
        for cell in same:
            yield planned(cell, plan, source="stored")
    tasks = [_task(same[0], key, options) for key, same in open_questions.items()]
    if not tasks:
        return
    with closing(executor.run(tasks)) as outcomes:
        for outcome in outcomes:
            yield from _kept(outcome, open_questions[outcome.key], store)


def stored_plan(store: Store, problem_id: str, options: SearchOptions) -> Plan | None:
    """A stored answer that a new search could not better: proved, or searched for as long as this one may."""
    found = store.find_search(problem_id)
    if found is None:
        return None
    text, wall_s = found
    enough = options.time_limit_s is not None and wall_s >= options.time_limit_s
    return Plan.model_validate_json(text.body) if text.is_final or enough else None


def _task(cell: Cell, key: str, options: SearchOptions) -> Task:
    problem = cell.problem
    if problem is None:
        raise ValueError(f"cell {cell.index} is no question")
    return Task(
        key=key,
        problem=problem.canonical_json(),
        top_k=options.top_k,
        time_limit_s=options.time_limit_s,
        seed=options.seed,
        profile_id=problem.profile_id,
    )


def _kept(outcome: Outcome, same: Sequence[Cell], store: Store) -> Generator[Answer, None, None]:
    problem = same[0].problem
    if outcome.plan is None or problem is None:
        yield from (without_plan(cell, outcome) for cell in same)
        return
    plan = Plan.model_validate_json(outcome.plan)
    try:
        recheck_plan(plan, problem)
    except CheckFailed as error:
        what = f"the plan does not hold when recomputed: {error}"
        wrong = Outcome(outcome.key, "failed", wall_s=outcome.wall_s, what=what, worker=outcome.worker)
        yield from (without_plan(cell, wrong) for cell in same)
        return
    store.save_plan(plan, outcome.wall_s)
    for cell in same:
        yield planned(cell, plan, source="searched", wall_s=outcome.wall_s, worker=outcome.worker)
