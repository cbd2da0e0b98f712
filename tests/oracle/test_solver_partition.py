"""``partition`` is exact: against every possible dealing of hundreds of random small tables."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from solver.check import check_partition
from solver.stage_partition import Objective, PartitionTables, partition

Array = NDArray[np.float64]


def _dealings(tables: PartitionTables) -> Iterator[tuple[int, ...]]:
    width = tables.add.shape[2]
    for counts in itertools.product(range(tables.low, tables.low + width), repeat=tables.num_stages):
        if sum(counts) == tables.num_items:
            yield counts


def _value(tables: PartitionTables, counts: tuple[int, ...], objective: Objective) -> float:
    """Objective of one dealing, infinite where an entry is forbidden."""
    start, picked = 0, []
    for stage, count in enumerate(counts):
        at = (stage, start, count - tables.low)
        picked.append((tables.add[at], tables.peak[at], tables.tail1[at], tables.tail2[at]))
        start += count
    columns = np.array(picked).T
    if not np.isfinite(columns[0]).all():
        return float("inf")
    further = [
        sum(each[stage, sum(counts[:stage]), count - tables.low] for stage, count in enumerate(counts))
        for each in tables.more
    ]
    parts = (columns[0].sum(), *columns[1:].max(axis=1), *further)
    return float(objective(*(np.array([part]) for part in parts))[0])


def random_tables(draw: random.Random) -> PartitionTables:
    stages, items, low = draw.randint(1, 4), draw.randint(1, 8), draw.choice([0, 1, 1, 1, 2])
    high = draw.randint(max(low, -(-items // stages)), max(items, low, -(-items // stages)))
    shape = (stages, items + 1, high - low + 1)
    numbers = np.random.default_rng(draw.randrange(2**32))
    style = draw.choice(["uniform", "ties", "additive"])
    if style == "ties":  # many equal values: dominance and ties matter
        add, peak, tail1, tail2 = (numbers.integers(0, 3, shape).astype(float) for _ in range(4))
    elif style == "additive":  # as in a pipeline: time grows with the number of layers
        layer_s = numbers.uniform(0.5, 2.0, items)
        running = np.concatenate([[0.0], np.cumsum(layer_s)])
        starts = np.arange(items + 1)[:, None]
        stops = np.minimum(starts + low + np.arange(shape[2])[None, :], items)
        add = np.broadcast_to(running[stops] - running[starts], shape) + numbers.uniform(0, 1, (stages, 1, 1))
        peak, tail1, tail2 = add.copy(), 0.1 * add + 0, numbers.uniform(0, 0.2, shape)
    else:
        add, peak, tail1, tail2 = (numbers.uniform(0, 1, shape) for _ in range(4))
    forbidden = numbers.uniform(0, 1, shape) < draw.choice([0.0, 0.1, 0.4, 0.8])
    add = np.where(forbidden, np.inf, add)
    return PartitionTables(add=add, peak=peak, tail1=tail1, tail2=tail2, low=low)


def random_objective(draw: random.Random) -> Objective:
    """Monotone in every argument: a weighted sum, a pipeline makespan, a maximum, or one with a kink."""
    weights = [draw.choice([0.0, 1.0, draw.uniform(0, 5)]) for _ in range(4)]
    microbatches = draw.randint(1, 8)

    def weighted(total: Array, peak: Array, tail1: Array, tail2: Array) -> Array:
        return weights[0] * total + weights[1] * peak + weights[2] * tail1 + weights[3] * tail2

    def pipeline(total: Array, peak: Array, tail1: Array, tail2: Array) -> Array:
        return total + (microbatches - 1) * peak + tail1 + tail2

    def largest(total: Array, peak: Array, tail1: Array, tail2: Array) -> Array:
        return np.maximum(np.maximum(weights[0] * total, peak), np.maximum(tail1, tail2))

    def kinked(total: Array, peak: Array, tail1: Array, tail2: Array) -> Array:
        return np.maximum(total - 1.0, 0.0) + np.floor(3 * peak) + np.sqrt(tail1) * tail2

    return draw.choice([weighted, pipeline, largest, kinked])


@pytest.mark.parametrize("batch", range(10))
def test_equal_to_the_best_of_all_dealings(batch: int) -> None:
    impossible = 0
    for seed in range(80 * batch, 80 * batch + 80):
        draw = random.Random(seed)
        tables, objective = random_tables(draw), random_objective(draw)
        best = min((_value(tables, counts, objective) for counts in _dealings(tables)), default=float("inf"))
        answer = partition(tables, objective)
        if not np.isfinite(best):
            assert answer is None
            impossible += 1
            continue
        assert answer is not None
        assert answer.objective == pytest.approx(best, rel=1e-12, abs=1e-12)
        assert _value(tables, answer.counts, objective) == pytest.approx(answer.objective, rel=1e-12, abs=1e-12)
        check_partition(tables, answer.counts, objective, answer.objective)
    assert 0 < impossible < 60, "the random tables should be of both kinds"


@pytest.mark.parametrize("batch", range(4))
def test_a_cutoff_changes_nothing_but_what_is_not_below_it(batch: int) -> None:
    for seed in range(10_000 + 60 * batch, 10_060 + 60 * batch):
        draw = random.Random(seed)
        tables, objective = random_tables(draw), random_objective(draw)
        values = [_value(tables, counts, objective) for counts in _dealings(tables)]
        best = min(values, default=float("inf"))
        if not np.isfinite(best):
            assert partition(tables, objective, cutoff=1e9) is None
            continue
        assert partition(tables, objective, cutoff=best) is None, "not below the cutoff"
        for cutoff in (best + 1e-6, best * 1.3 + 0.1, max(value for value in values if np.isfinite(value)) + 1.0):
            answer = partition(tables, objective, cutoff=cutoff)
            assert answer is not None
            assert answer.objective == pytest.approx(best, rel=1e-12, abs=1e-12)


def test_the_same_tables_give_the_same_dealing() -> None:
    for seed in range(40):
        first, second = (
            partition(random_tables(draw), random_objective(draw))
            for draw in (random.Random(seed), random.Random(seed))
        )
        assert first == second


def test_the_only_dealing_is_found_under_every_cutoff_above_it() -> None:
    """Sums of the same stages in another order differ in their last digits; the limits leave room for that."""
    for seed in range(200):
        draw = np.random.default_rng(seed)
        stages = int(draw.integers(2, 9))
        add = draw.uniform(1e-4, 1e-2, size=(stages, stages + 1, 1))
        add[:, stages] = np.inf
        tail = draw.uniform(0.1, 0.2, size=add.shape)
        tables = PartitionTables(add=add, peak=add, tail1=tail, tail2=np.zeros_like(add), low=1)

        def objective(total: Array, peak: Array, tail1: Array, tail2: Array) -> Array:
            return np.asarray(total + peak + tail1 + tail2)

        free = partition(tables, objective)
        assert free is not None
        limited = partition(tables, objective, free.objective * (1 + 1e-9))
        assert limited is not None
        assert limited.counts == free.counts
