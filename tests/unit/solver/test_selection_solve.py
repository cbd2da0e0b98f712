"""Limits, promises and refusals of the selection solver."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest

from planner.shard.instance import read_instance
from solver.check import CheckFailed
from solver.selection.answer import TracePoint
from solver.selection.check import check_selection
from solver.selection.problem import InvalidSelection, SelectionProblem
from solver.selection.solve import solve

SAMPLES = Path(__file__).parents[2] / "samples" / "iopddl"


def grid_problem(seed: int, width: int = 12, options: int = 8) -> SelectionProblem:
    """A grid of nodes that all live at once, with half of the usage that the cheapest options would take."""
    random = np.random.default_rng(seed)
    num = width * width
    right = [(i, i + 1) for i in range(num) if (i + 1) % width]
    down = [(i, i + width) for i in range(num - width)]
    pairs = np.array(right + down, np.int64)
    usages = random.integers(0, 100, num * options)
    least = int(usages.reshape(num, options).min(axis=1).sum())
    return SelectionProblem(
        option_counts=np.full(num, options, np.int64),
        node_costs=random.integers(0, 1000, num * options),
        usages=usages,
        live_from=np.zeros(num, np.int64),
        live_until=np.ones(num, np.int64),
        edge_nodes=pairs,
        edge_costs=random.integers(0, 1000, pairs.shape[0] * options * options),
        capacity=2 * least,
    )


@pytest.mark.parametrize(("name", "cost"), [("B", 532_843), ("G", 217_039)])
def test_contest_instances_are_solved_to_the_published_optimum(name: str, cost: int) -> None:
    problem = read_instance(SAMPLES / f"asplos-2025-iopddl-{name}.json.gz")
    answer = solve(problem, time_limit_s=60.0)
    assert (answer.status, answer.cost, answer.bound, answer.gap) == ("optimal", cost, cost, 0.0)


def test_the_same_seed_and_work_give_the_same_answer() -> None:
    problem = grid_problem(1)
    first, second = (solve(problem, time_limit_s=600.0, seed=3, work_limit=60_000_000) for _ in range(2))
    assert first.choice == second.choice
    assert first.bound == second.bound
    assert [(p.cost, p.bound, p.by) for p in first.trace] == [(p.cost, p.bound, p.by) for p in second.trace]


def test_the_trace_only_improves_and_the_bound_stays_below() -> None:
    points: list[TracePoint] = []
    answer = solve(grid_problem(2), time_limit_s=1.5, on_progress=points.append)
    assert answer.trace == tuple(points)
    costs = [point.cost for point in points if point.cost is not None]
    bounds = [point.bound for point in points if point.bound is not None]
    assert costs == sorted(costs, reverse=True)
    assert bounds == sorted(bounds)
    assert answer.bound is not None
    assert answer.cost is not None
    assert bounds[-1] == answer.bound <= answer.cost == costs[-1]


def test_a_stop_keeps_the_best_so_far() -> None:
    seen: list[TracePoint] = []
    answer = solve(
        grid_problem(3), time_limit_s=600.0, on_progress=seen.append, should_stop=lambda: any(p.cost for p in seen)
    )
    assert answer.status == "feasible"
    assert answer.cost is not None


def test_no_time_gives_no_answer_and_says_so() -> None:
    answer = solve(grid_problem(4), time_limit_s=0.0)
    assert (answer.status, answer.cost, answer.choice) == ("unknown", None, None)


def test_a_window_that_cannot_hold_its_nodes_is_named() -> None:
    problem = dataclasses.replace(grid_problem(5), capacity=10)
    window = solve(problem).binding_window
    assert window is not None
    least = int(problem.usages.reshape(-1, 8).min(axis=1).sum())
    assert (window.begin, window.end, window.least_usage, window.capacity) == (0, 1, least, 10)


def test_nodes_that_exclude_each_other_are_named() -> None:
    problem = dataclasses.replace(grid_problem(6), edge_costs=np.full(grid_problem(6).edge_costs.size, 10**18))
    answer = solve(problem)
    assert answer.status == "infeasible"
    assert len(answer.forbidden_nodes) == 2


def test_nothing_to_decide_is_decided() -> None:
    nothing = np.zeros(0, np.int64)
    problem = SelectionProblem(nothing, nothing, nothing, nothing, nothing, nothing.reshape(0, 2), nothing, 5)
    answer = solve(problem)
    assert (answer.status, answer.cost, answer.choice) == ("optimal", 0, ())


def test_costs_too_large_for_exact_sums_are_refused() -> None:
    problem = dataclasses.replace(grid_problem(7), node_costs=np.full(12 * 12 * 8, 10**17))
    with pytest.raises(InvalidSelection, match="common factor"):
        solve(problem)


@pytest.mark.parametrize("wrong", ["cost", "option", "length", "memory"])
def test_the_checker_refuses(wrong: str) -> None:
    problem = grid_problem(8, width=4)
    choice = [0] * 16
    cost = sum(int(problem.node_costs[i * 8]) for i in range(16)) + int(problem.edge_costs[::64].sum())
    roomy = dataclasses.replace(problem, capacity=10**6)
    assert check_selection(roomy, choice, cost) == cost
    claims = {
        "cost": (roomy, choice, cost - 1),
        "option": (roomy, [8, *choice[1:]], cost),
        "length": (roomy, choice[1:], cost),
        "memory": (dataclasses.replace(problem, capacity=1), choice, cost),
    }
    with pytest.raises(CheckFailed):
        check_selection(*claims[wrong])


@pytest.mark.slow
def test_a_limit_is_kept() -> None:
    seconds = 2.0
    begin = time.process_time()
    answer = solve(grid_problem(9, width=30, options=20), time_limit_s=seconds, threads=1)
    assert answer.choice is not None
    assert time.process_time() - begin < 4 * seconds
