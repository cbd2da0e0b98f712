"""The checker refuses every answer that is not what it claims to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from solver.check import CheckFailed, check_partition
from solver.stage_partition import PartitionTables, partition

Array = NDArray[np.float64]


def _objective(total: Array, peak: Array, tail1: Array, tail2: Array) -> Array:
    return total + 3 * peak + tail1 + tail2


@pytest.fixture
def tables() -> PartitionTables:
    """Three stages, five items, one to three items a stage; a stage takes as long as it has items, and its number."""
    add = np.empty((3, 6, 3))
    for stage in range(3):
        add[stage] = np.arange(1, 4) + stage
    add[1, 2, 0] = np.inf
    return PartitionTables(add=add, peak=add.copy(), tail1=0.5 * add, tail2=np.zeros_like(add), low=1)


def test_an_honest_answer_passes(tables: PartitionTables) -> None:
    answer = partition(tables, _objective)
    assert answer is not None
    assert check_partition(tables, answer.counts, _objective, answer.objective) == answer.objective


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((2, 3), "2 stages hold 5 of 5 items"),
        ((1, 1, 1, 2), "4 stages"),
        ((1, 2, 1), "hold 4 of 5"),
        ((2, 2, 2), "hold 6 of 5"),
        ((2, 1, 2), "stage 1 cannot hold 1 items from 2"),
        ((1, 4, 0), "stage 1 cannot hold 4"),
        ((3, 3, -1), "stage 2 cannot hold -1"),
    ],
)
def test_an_infeasible_dealing_is_refused(tables: PartitionTables, counts: tuple[int, ...], why: str) -> None:
    with pytest.raises(CheckFailed, match=why):
        check_partition(tables, counts, _objective, 1.0)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1 - 1e-6, 1 + 1e-6, 2.0, float("inf"), float("nan")])
def test_a_wrong_objective_is_refused(tables: PartitionTables, factor: float) -> None:
    answer = partition(tables, _objective)
    assert answer is not None
    with pytest.raises(CheckFailed, match="claimed"):
        check_partition(tables, answer.counts, _objective, answer.objective * factor)


def test_an_answer_to_other_tables_is_refused(tables: PartitionTables) -> None:
    answer = partition(tables, _objective)
    assert answer is not None
    for name in ("add", "peak", "tail1"):
        dearer = replace(tables, **{name: getattr(tables, name) * 1.01})
        with pytest.raises(CheckFailed, match="claimed"):
            check_partition(dearer, answer.counts, _objective, answer.objective)


def test_a_not_a_number_in_the_tables_is_refused(tables: PartitionTables) -> None:
    answer = partition(tables, _objective)
    assert answer is not None
    broken = replace(tables, peak=np.full_like(tables.peak, np.nan))
    with pytest.raises(CheckFailed):
        check_partition(broken, answer.counts, _objective, answer.objective)
