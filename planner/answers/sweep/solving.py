"""Solving a task in a worker: it searches; whatever happens is an outcome, so one cell never ends a sweep."""

from __future__ import annotations

import logging
import time

from planner.answers.sweep.task import Outcome, OutcomeKind, Task
from planner.errors import BudgetSpent, MeshwrightError, NoFeasiblePlan
from planner.question.problem import Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions

log = logging.getLogger("meshwright.sweep")


def solve(task: Task, worker: str = "") -> Outcome:
    """Search the problem of a task as ``meshwright plan`` would."""
    start_s = time.perf_counter()
    try:
        problem = Problem.model_validate_json(task.problem)
        options = SearchOptions(top_k=task.top_k, time_limit_s=task.time_limit_s, seed=task.seed)
        plan = find_plan(problem, options)
    except MeshwrightError as error:
        return _without_plan(task, error, time.perf_counter() - start_s, worker)
    except Exception as error:
        log.exception("a cell failed")
        first = str(error).splitlines()[0] if str(error) else "no message"
        what = f"unexpected {type(error).__name__}: {first}"
        return Outcome(task.key, "failed", what=what, wall_s=time.perf_counter() - start_s, worker=worker)
    wall_s = time.perf_counter() - start_s
    return Outcome(task.key, "planned", plan=plan.canonical_json(), wall_s=wall_s, worker=worker)


def _without_plan(task: Task, error: MeshwrightError, wall_s: float, worker: str) -> Outcome:
    kind: OutcomeKind = "refused" if error.exit_code != MeshwrightError.exit_code else "failed"
    if isinstance(error, BudgetSpent):
        kind = "undecided"
    nothing_fits = error if isinstance(error, NoFeasiblePlan) else None
    if nothing_fits is not None:
        kind = "infeasible"
    return Outcome(
        key=task.key,
        kind=kind,
        wall_s=wall_s,
        what=error.what,
        where=error.where,
        hint=error.hint,
        binding=None if nothing_fits is None else nothing_fits.binding,
        relaxations=() if nothing_fits is None else nothing_fits.relaxations,
        worker=worker,
    )
