"""The solver of programs: against every point of small ones, and what its limits and its options do."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from solver.mixed_integer import Limits, Program, Triplets, solve_program
from solver.selection.core_milp import OPTIONS

FREE = Limits(lambda: False, 60.0)


def knapsacks(seed: int, size: int, rows: int) -> Program:
    """Several knapsacks over the same whole things, the most valuable ones wanted."""
    draw = np.random.default_rng(seed)
    weights = draw.integers(0, 20, (rows, size)).astype(float)
    row, column = np.nonzero(weights)
    return Program(
        cost=-draw.integers(10, 60, size).astype(float),
        lower=np.zeros(size),
        upper=np.ones(size),
        integer=np.ones(size, np.bool_),
        matrix=Triplets(row, column, weights[row, column]),
        row_lower=np.full(rows, -np.inf),
        row_upper=np.floor(0.4 * weights.sum(axis=1)),
    )


def best(program: Program) -> float:
    """The least cost of all points."""
    points = np.array(list(itertools.product((0.0, 1.0), repeat=program.cost.size)))
    rows = np.zeros((program.row_upper.size, program.cost.size))
    np.add.at(rows, (program.matrix.rows, program.matrix.columns), program.matrix.entries)
    fits = np.all(points @ rows.T <= program.row_upper, axis=1)
    return float((points[fits] @ program.cost).min())


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_the_best_of_all_points(seed: int) -> None:
    program = knapsacks(seed, 10, 3)
    solved = solve_program(program, FREE, OPTIONS)
    assert solved.optimal
    assert not solved.infeasible
    assert solved.values is not None
    assert program.cost @ solved.values == pytest.approx(best(program), abs=1e-6)
    assert solved.bound == pytest.approx(best(program), abs=1e-6)


def test_entries_of_one_place_add_up() -> None:
    program = knapsacks(0, 8, 2)
    matrix = program.matrix
    rows, columns = np.tile(matrix.rows, 2)[::-1], np.tile(matrix.columns, 2)[::-1]
    halves = np.tile(matrix.entries / 2, 2)[::-1]
    twice = solve_program(replace(program, matrix=Triplets(rows, columns, halves)), FREE, OPTIONS)
    assert twice.bound == pytest.approx(best(program), abs=1e-6)


def test_what_is_not_whole_may_be_split() -> None:
    program = replace(knapsacks(0, 10, 3), integer=np.zeros(10, np.bool_))
    relaxed = solve_program(program, FREE, OPTIONS)
    assert relaxed.values is not None
    assert program.cost @ relaxed.values < best(program)


def test_it_says_that_nothing_fits() -> None:
    program = knapsacks(1, 10, 3)
    crowded = replace(program, row_lower=program.row_upper + 1, row_upper=np.full(3, np.inf), upper=np.full(10, 0.1))
    assert solve_program(crowded, FREE, OPTIONS).infeasible


def test_a_cut_off_below_the_best_point_leaves_nothing_below_it() -> None:
    for seed in range(3):
        program = knapsacks(seed, 10, 3)
        cut_off = best(program) - 0.5
        below = solve_program(program, FREE, {**OPTIONS, "objective_bound": cut_off})
        assert below.infeasible or below.bound > cut_off, seed
        above = solve_program(program, FREE, {**OPTIONS, "objective_bound": cut_off + 1.0})
        assert above.bound == pytest.approx(best(program), abs=1e-6), seed


def test_a_limit_leaves_a_bound_below_the_best_point() -> None:
    program = knapsacks(2, 40, 16)
    for limits in (replace(FREE, max_nodes=1), replace(FREE, share_s=0.1)):
        solved = solve_program(program, limits, OPTIONS)
        assert not solved.optimal
        assert not solved.infeasible
        assert solved.values is None or solved.bound <= program.cost @ solved.values


def test_the_same_program_takes_the_same_path() -> None:
    program, limits = knapsacks(3, 30, 8), replace(FREE, max_nodes=10)
    first, again = (solve_program(program, limits, OPTIONS) for _ in range(2))
    assert first.bound == again.bound
    assert first.values is not None
    assert again.values is not None
    assert first.values.tolist() == again.values.tolist()


def test_who_is_interrupted_leaves_at_once_and_the_solver_ends_by_its_limit() -> None:
    begin = time.monotonic()
    solved = solve_program(knapsacks(4, 80, 40), Limits(lambda: True, 60.0, share_s=0.3), OPTIONS)
    assert time.monotonic() - begin < 0.25
    assert (solved.values, solved.bound, solved.optimal, solved.infeasible) == (None, -np.inf, False, False)
    for thread in threading.enumerate():
        if thread.name == "HiGHS":
            thread.join(20.0)
            assert not thread.is_alive()


def test_an_option_that_the_solver_does_not_know_is_an_error() -> None:
    with pytest.raises(ValueError, match="option name was unknown"):
        solve_program(knapsacks(0, 8, 2), FREE, {"presolve_more": 1.0})
