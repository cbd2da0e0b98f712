"""Columns of strategies stand for the strategies, and equal rows are found, however large their numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from planner.backends.registry import backend
from planner.search.choices import virtual_stages
from planner.search.chunk_choices import chunk_choices
from planner.search.reliefs import relief_choices
from planner.strategy.rows import MANY_ROWS, TABLE_A_ROW, StrategyRows, distinct_rows, first_of_each
from tests.declared_space import all_rows
from tests.search_problems import random_problem


@pytest.mark.parametrize("seed", range(5))
def test_rows_and_strategies_are_the_same(seed: int) -> None:
    problem = random_problem(seed, backend="unrestricted")
    rows, reliefs = all_rows(problem, problem.cluster.num_devices), relief_choices(problem)
    for index in random.Random(seed).sample(range(len(rows)), min(50, len(rows))):
        strategy = rows.strategy(index, reliefs)
        again = StrategyRows.of([strategy], reliefs)
        assert again.strategy(0, reliefs) == strategy


@pytest.mark.parametrize("largest", [3, 2**20, 2**40])
def test_distinct_rows(largest: int) -> None:
    """Three columns up to 2**40 do not fit one integer."""
    numbers = np.random.default_rng(largest)
    few = numbers.integers(0, largest, (3, 4))
    picks = numbers.integers(0, 4, (3, 200))
    columns = [few[column][picks[column]] for column in range(3)]
    distinct, index = distinct_rows(columns)
    assert (distinct[index] == np.stack(columns, axis=1)).all()
    assert len({tuple(row) for row in distinct.tolist()}) == len(distinct)
    assert len(distinct) == len(set(zip(*(column.tolist() for column in columns), strict=True)))


@pytest.mark.parametrize("largest", [2, 5, 30, 2**20, 2**40])
def test_where_each_distinct_row_comes_first(largest: int) -> None:
    """By a table of all values (few of them), by sorting one integer a row, or by sorting rows."""
    numbers = np.random.default_rng(largest)
    columns = [numbers.integers(0, largest, 300) for _ in range(2)]
    first, index = first_of_each(columns)
    seen: dict[tuple[int, ...], int] = {}
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    for position, row in enumerate(rows):
        seen.setdefault(row, position)
    assert first.tolist() == [seen[row] for row in sorted(seen)]
    assert [rows[first[at]] for at in index.tolist()] == rows
    by_table = largest**2 <= TABLE_A_ROW * 300
    assert by_table == (largest <= 30), "the cases cover the table and the sorts"


@pytest.mark.parametrize("kinds", [2, 5, 40])
def test_many_rows_of_a_few_large_values_are_found_by_their_ranks(kinds: int) -> None:
    numbers = np.random.default_rng(kinds)
    values = [numbers.choice(2**20, kinds, replace=False), np.arange(kinds) ** 3]
    columns = [some[numbers.integers(0, kinds, MANY_ROWS)] for some in values]
    first, index = first_of_each(columns)
    _, by_numpy, back = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    assert first.tolist() == by_numpy.tolist()
    assert index.tolist() == back.reshape(-1).tolist()


@pytest.mark.parametrize(
    ("layers", "pp", "among"),
    [(126, 14, 9), (56, 4, 14), (96, 4, 24), (105, 5, 21), (126, 16, 4), (80, 4, 20), (80, 2, 20)],
)
def test_a_device_may_hold_a_chunk_for_every_divisor_of_its_layers(layers: int, pp: int, among: int) -> None:
    """405B on 14 stages, Mixtral-8x22B, GPT-3 and MT-NLG: 9, 14, 24 and 21 chunks deal their layers evenly."""
    found = virtual_stages(layers, pp)
    assert among in found
    assert all(2 <= vpp <= 24 and vpp * pp <= layers for vpp in found)
    if layers % pp == 0:
        divisors = {number for number in range(2, min(24, layers // pp) + 1) if layers // pp % number == 0}
        assert divisors <= set(found)
    columns = backend("torchtitan").releases[0].space.columns
    assert {vpp for vpp, _ in chunk_choices(columns, "interleaved", pp, 8 * pp, layers)} == set(found)


@pytest.mark.parametrize(("layers", "pp", "vpp"), [(94, 32, 3), (126, 16, 8), (126, 32, 4), (61, 21, 3)])
def test_embedding_and_head_may_be_the_only_things_of_a_chunk(layers: int, pp: int, vpp: int) -> None:
    """Qwen3-235B-A22B on 32 stages, 405B on 16 and on 32: one or two chunks more than layers, in Megatron-LM alone."""
    megatron, titan = (backend(name).releases[0].space.columns for name in ("megatron", "torchtitan"))
    with_ends, without = (
        {chosen for chosen, _ in chunk_choices(columns, "interleaved", pp, 8 * pp, layers)}
        for columns in (megatron, titan)
    )
    assert vpp in with_ends - without
    assert all(chosen * pp <= layers + 2 for chosen in with_ends)
