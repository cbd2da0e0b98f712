"""What the oracles of the search ask of every question: its plan is the best of all."""

from __future__ import annotations

import pytest

from planner.errors import NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from tests.exhaustive_search import exhaustive_best


def assert_search_is_optimal(problem: Problem) -> Plan | None:
    """The search finds what trying everything finds; the plan, or None where nothing fits."""
    best, _ = exhaustive_best(problem)
    try:
        plan = find_plan(problem, SearchOptions(top_k=0))
    except NoFeasiblePlan:
        assert best is None, f"a plan was missed: {best}"
        return None
    assert best is not None, "a plan was found that exhaustive evaluation says does not fit"
    assert plan.step_time_s == pytest.approx(best.step_time_s, rel=1e-9), best
    assert plan.lower_bound_s == plan.step_time_s
    return plan
