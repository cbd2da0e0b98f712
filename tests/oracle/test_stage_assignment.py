"""Is ``assign`` exact?  Against every assignment of hundreds of random small tables, and against a MILP."""

from __future__ import annotations

import pytest

from solver.stage_assignment.assign import assign
from solver.stage_assignment.tables import StableAndLate
from tests.assignment_tables import every_assignment, mist_value, random_tables


@pytest.mark.parametrize("block", range(6))
def test_it_finds_the_best_of_all_assignments(block: int) -> None:
    feasible = 0
    for seed in range(block * 50, block * 50 + 50):
        tables = random_tables(seed)
        rounds, hides, consecutive = (1, 2, 8)[seed % 3], (1.0, 0.0, 0.5)[seed % 7 % 3], seed % 5 == 0
        best = min(
            (mist_value(tables, s, rounds, hides) for s in every_assignment(tables, consecutive=consecutive)),
            default=float("inf"),
        )
        answer = assign(tables, StableAndLate(rounds, hides), consecutive=consecutive)
        if best == float("inf"):
            assert answer is None, seed
            continue
        feasible += 1
        assert answer is not None, seed
        assert answer.value.value == pytest.approx(best, rel=1e-9), seed
        assert answer.bound == pytest.approx(best, rel=1e-9), seed
    assert feasible > 10
