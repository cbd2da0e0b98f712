"""What does the space of a problem look like, one feasible strategy at a time?  Random plans, for tests and surveys.

A draw goes down the four levels of the space (core, layout, sharding, leaf), each uniformly, so rare schedules and
shardings are drawn about as often as common ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.errors import DocumentInvalid
from planner.plan import Plan
from planner.problem import Problem
from planner.search.estimate import estimate
from planner.search.space import Space
from planner.strategy import Strategy
from planner.strategy_rows import StrategyRows


def random_strategies(problem: Problem, seed: int) -> Iterator[Strategy]:
    """Legal strategies of the problem's space on all devices, without end; none where the space is empty."""
    space = Space(problem, problem.cluster.num_devices)
    cores = space.cores
    draw = np.random.default_rng(seed)
    key = np.zeros(1, dtype=np.int64)
    while len(cores):
        row = _one(cores, draw)
        for grow in (space.layouts, space.shardings, space.leaves):
            rows, _ = grow(row, key)
            if not len(rows):
                break
            row = _one(rows, draw)
        else:
            yield row.strategy(0, space.reliefs)


def random_plans(problem: Problem, seed: int, tries: int) -> Iterator[Plan]:
    """Plans of those of ``tries`` random strategies that fit in memory and that the problem's target can run."""
    for _, strategy in zip(range(tries), random_strategies(problem, seed), strict=False):
        try:
            plan = estimate(problem, strategy)
        except DocumentInvalid:
            continue
        if plan.status != "infeasible":
            yield plan


def _one(rows: StrategyRows, draw: np.random.Generator) -> StrategyRows:
    at = int(draw.integers(len(rows)))
    return rows.slice(at, at + 1)
