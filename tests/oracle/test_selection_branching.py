"""The search tree of the selection solver against every selection there is."""

from __future__ import annotations

import dataclasses
import functools
import random
import threading

import numpy as np
import pytest

import solver.selection.branch as branching
from solver.selection.branch import Tree
from solver.selection.check import check_selection
from solver.selection.cutting import Part, ascend_steps
from solver.selection.dual import Dual
from solver.selection.incumbent import Incumbent, Pool
from solver.selection.presolve.memory_rows import node_memory
from solver.selection.presolve.merge import Contradiction
from solver.selection.presolve.presolve import CapacityExceeded, presolve
from solver.selection.problem import FORBIDDEN, SelectionProblem
from solver.selection.shortage import problem_within
from solver.selection.solve import solve
from tests.oracle.test_selection_exhaustive import best_by_enumeration, dense_problem

NEVER_A_LEAF = -1
SEEDS = range(40)


@functools.cache
def optimum(seed: int) -> int | None:
    """By enumeration."""
    return best_by_enumeration(dense_problem(seed))


def tree_of(problem: SelectionProblem, incumbent: Incumbent) -> Tree | None:
    """A tree without leaves for HiGHS over the presolved problem; None where presolve alone decides it."""
    try:
        reduced = presolve(problem, lambda: False)
    except (Contradiction, CapacityExceeded):
        return None
    if reduced.num_classes == 0:
        return None
    dual = Dual(reduced, Pool(reduced, incumbent))
    ascend_steps(dual, 3)
    return Tree(Part(reduced, dual, dual.prove().bound), incumbent, leaf_pairs=NEVER_A_LEAF)


@pytest.fixture
def short_ascents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weak bounds, so that problems small enough to enumerate need a tree."""
    for name in ("NODE_STEPS", "CUT_STEPS", "TRIAL_STEPS"):
        monkeypatch.setattr(branching, name, 2)


@pytest.mark.usefixtures("short_ascents")
@pytest.mark.parametrize("looseness", [None, 1, 25, 400])
def test_from_any_incumbent_the_tree_returns_the_optimum(looseness: int | None) -> None:
    explored = 0
    for seed in SEEDS:
        problem, best = dense_problem(seed), optimum(seed)
        incumbent = Incumbent(problem, 0.0, float("inf"))
        if best is not None and looseness is not None:
            incumbent.offer(best + looseness, lambda: np.zeros(0, np.int64), "given")
        tree = tree_of(problem, incumbent)
        if tree is None:
            continue
        tree.work(lambda: False)
        assert tree.done
        assert incumbent.cost == best, seed
        explored += tree.explored
        if best is None:
            continue
        assert incumbent.choice is not None
        assert check_selection(problem, incumbent.choice().tolist(), best) == best
        assert all(point.bound is None or point.bound <= best for point in incumbent.trace if point.cost != best)
    assert explored > 60


@pytest.mark.usefixtures("short_ascents")
def test_several_threads_share_one_tree() -> None:
    for seed in SEEDS[:20]:
        problem = dense_problem(seed)
        incumbent = Incumbent(problem, 0.0, float("inf"))
        tree = tree_of(problem, incumbent)
        if tree is None:
            continue
        helpers = [threading.Thread(target=tree.work, args=(lambda: False,)) for _ in range(3)]
        for helper in helpers:
            helper.start()
        for helper in helpers:
            helper.join()
        assert tree.done
        assert incumbent.cost == optimum(seed), seed


@pytest.mark.usefixtures("short_ascents")
def test_what_is_left_of_a_stopped_tree_can_be_taken_up_again() -> None:
    resumed = 0
    for seed in SEEDS[:20]:
        problem = dense_problem(seed)
        incumbent = Incumbent(problem, 0.0, float("inf"))
        tree = tree_of(problem, incumbent)
        if tree is None:
            continue
        dice = random.Random(seed)
        while not tree.done:
            resumed += 1
            tree.work(lambda dice=dice: dice.random() < 0.2)  # type: ignore[misc]
        assert incumbent.cost == optimum(seed), seed
    assert resumed > 20


def least_capacity(problem: SelectionProblem) -> int:
    """The least capacity with a selection, by enumeration; less than 400."""
    low, high = 0, 400
    while low < high:
        middle = (low + high) // 2
        fits = best_by_enumeration(dataclasses.replace(problem, capacity=middle)) is not None
        low, high = (low, middle) if fits else (middle + 1, high)
    return low


def test_the_window_named_is_too_small_and_nothing_in_it_can_be_left_out() -> None:
    wide = 0
    for seed in SEEDS[:8]:
        problem = dataclasses.replace(dense_problem(seed), capacity=least_capacity(dense_problem(seed)) - 1)
        answer = solve(problem, threads=1)
        window = answer.binding_window
        assert answer.status == "infeasible"
        assert window is not None
        assert best_by_enumeration(problem_within(problem, window.begin, window.end)) is None
        begins, ends = node_memory(problem)[1:]
        rows = list(zip(begins.tolist(), ends.tolist(), strict=True))
        inside = [row for row in rows if window.begin <= row[0] and row[1] <= window.end]
        for part in (inside[1:], inside[:-1]):
            if part:
                wide += 1
                assert best_by_enumeration(problem_within(problem, part[0][0], part[-1][1])) is not None
    assert wide >= 2


def test_options_that_exclude_each_other_in_a_circle_are_not_blamed_on_capacity() -> None:
    pairs = np.array([(a, b) for a in range(4) for b in range(a)], np.int64)
    different = np.where(np.eye(3, dtype=np.bool_), FORBIDDEN, 0).ravel()
    problem = SelectionProblem(
        option_counts=np.full(4, 3, np.int64),
        node_costs=np.arange(12, dtype=np.int64),
        usages=np.arange(12, dtype=np.int64) % 3,
        live_from=np.zeros(4, np.int64),
        live_until=np.ones(4, np.int64),
        edge_nodes=pairs,
        edge_costs=np.tile(different, pairs.shape[0]),
        capacity=7,
    )
    for capacity in (None, 7):
        answer = solve(dataclasses.replace(problem, capacity=capacity), threads=1)
        assert (answer.status, answer.binding_window, answer.forbidden_nodes) == ("infeasible", None, (0, 1, 2, 3))
