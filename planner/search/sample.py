"""Random plans of a problem's space, one feasible strategy at a time, for tests and surveys.

A draw goes down the four levels of the space (core, layout, sharding, leaf), each uniformly, so rare schedules and
shardings are drawn about as often as common ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.backends.asked import problem_hardware, the_software
from planner.backends.rules.rule import rule_input
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.backend_rules import BackEndRules
from planner.search.branch import Search
from planner.search.core_waves import core_bounds
from planner.search.estimate import estimate_if_it_fits
from planner.search.options import SearchOptions
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Strategy

DRAWS_A_TRY = 20
"""Draws after which a back-end that refuses all of them is given up."""
FRUITLESS = 2000
"""Draws in a row without a legal strategy after which the space counts as empty."""


def random_strategies(problem: Problem, seed: int) -> Iterator[Strategy]:
    """Legal strategies of the problem's space on all devices, without end; none where the space is empty.

    Ends after ``FRUITLESS`` draws that led to none.  Cores under which not even the leanest strategy fits are left out.
    """
    search = Search(problem, problem_hardware(problem), SearchOptions())
    space, cores = search.space, search.space.cores
    if len(cores):
        bounds = core_bounds(search.costs, cores, search.costs.keyed(cores), search.rules.limit_bytes)
        cores = cores.take(np.flatnonzero(np.isfinite(bounds)))
    draw = np.random.default_rng(seed)
    key = np.zeros(1, dtype=np.int64)
    fruitless = 0
    while len(cores) and fruitless < FRUITLESS:
        fruitless += 1
        row = _one(cores, draw)
        for grow in (space.layouts, space.shardings, space.leaves):
            rows, _ = grow(row, key)
            if not len(rows):
                break
            row = _one(rows, draw)
        else:
            fruitless = 0
            yield row.strategy(0, space.reliefs)


def random_plans(problem: Problem, seed: int, tries: int) -> Iterator[Plan]:
    """Plans of those of ``tries`` random strategies that the problem's one back-end runs and that fit in memory."""
    rules = BackEndRules(problem)
    if rules.always():
        return
    table = the_software(problem).release.space.rules
    drawn = random_strategies(problem, seed)
    # A back-end's rules cost little beside a prediction, and may refuse most draws.
    runnable = (
        strategy for _, strategy in zip(range(DRAWS_A_TRY * tries), drawn, strict=False) if not rules.refuses(strategy)
    )
    for _, strategy in zip(range(tries), runnable, strict=False):
        plan = estimate_if_it_fits(problem, strategy)
        # Some rules are about the dealing of layers, which is there only now.
        if plan is not None and not table.violations(rule_input(plan)):
            yield plan


def _one(rows: StrategyRows, draw: np.random.Generator) -> StrategyRows:
    at = int(draw.integers(len(rows)))
    return rows.slice(at, at + 1)
