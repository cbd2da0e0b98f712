"""The search's bounds are bounds: each level of the space is below everything under it, in time and in memory.

The truth comes from ``tests.exhaustive_search``: every dealing and every relief of every strategy.
"""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from operator import itemgetter

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.backends.registry import physics_by_name
from planner.model.load import load_model
from planner.predict.candidate import Split
from planner.predict.cost.hardware import problem_hardware as hardware_under
from planner.question.problem import UNRESTRICTED, Problem, Workload
from planner.search.bound import BoundTerms
from planner.search.evaluate import evaluate_split
from planner.search.memory_bound import layout_bounds_s, lower_bounds_s
from planner.search.row_context import strategy_context
from planner.search.space import Space
from planner.search.split_limits import memory_limit_bytes, split_rules
from planner.search.stage_capacity import MemoryLimits
from planner.strategy.rows import StrategyRows
from planner.strategy.schedules import SCHEDULE_NAMES
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.calibrated_problems import calibrated
from tests.exhaustive_search import Outcomes, all_outcomes
from tests.sampling import drawn
from tests.search_problems import Size, random_problem

ROUNDING = 1 - 1e-9
CORE = ("vpp", "group", "schedule", "pp_inner")
SHARDING = ("dp_replicate", "zero", "overlap_grad", "overlap_param", "optimizer_offload")
PLAIN = {"vpp": 1, "dp_replicate": 1, "overlap_grad": 1, "overlap_param": 1}
SMALL = Size(max_devices=8, max_layers=5, max_batch=8)
PHYSICS_SEEDS = (1020, 1021, 1022, 1027)


def _plainest(rows: StrategyRows, *columns: str) -> StrategyRows:
    """The rows with ``columns`` at the value that the search's upper levels give them."""
    return replace(rows, **{name: np.full(len(rows), PLAIN.get(name, 0)) for name in columns})


def _levels(outcomes: Outcomes) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of core, layout and sharding of every strategy, as the search computes them."""
    costs, rows = outcomes.costs, outcomes.rows
    cores = _plainest(rows, "relief", *SHARDING, *CORE)
    layouts, shardings = _plainest(rows, "relief", *SHARDING), _plainest(rows, "relief")
    core = BoundTerms(costs, cores, costs.rows(cores), leanest_tail=True)
    core_s = cores.num_microbatches * core.total_s / cores.pp + core.tail_s
    layout = BoundTerms(costs, layouts, costs.rows(layouts), leanest_tail=True)
    layout_s = layout.loose_s
    sharding_s = BoundTerms(costs, shardings, costs.rows(shardings)).loose_s
    return core_s, layout_s, sharding_s


def _layout_bounds_s(problem: Problem, outcomes: Outcomes, cutoff_s: float = np.inf) -> NDArray[np.float64]:
    """Bound with memory of the layout of every strategy, as the search computes it."""
    layouts = _plainest(outcomes.rows, "relief", *SHARDING)
    table, key = outcomes.costs.keyed(layouts)
    terms = BoundTerms(outcomes.costs, layouts, outcomes.costs.rows(layouts, (table, key)), leanest_tail=True)
    rules = split_rules(problem, outcomes.costs.hardware)
    limits = MemoryLimits(rules.limit_bytes, rules.host_limit_bytes)
    codes = Space(problem, outcomes.costs.hardware.num_devices).relief_codes
    return layout_bounds_s(terms, table.layers, codes, limits, cutoff_s)


def _problem(seed: int, *, with_factors: bool = False) -> Problem:
    problem = random_problem(seed, SMALL, UNRESTRICTED)
    return calibrated(problem, seed) if with_factors else problem


def _check_time(problem: Problem, outcomes: Outcomes) -> int:
    if len(outcomes.rows) == 0:
        return 0
    limit = memory_limit_bytes(problem, outcomes.costs.hardware)
    core_s, layout_s, sharding_s = _levels(outcomes)
    leaf = BoundTerms(outcomes.costs, outcomes.rows, outcomes.costs.rows(outcomes.rows))
    leaf_s = lower_bounds_s(leaf, limit)
    assert (core_s * ROUNDING <= layout_s).all()
    assert (layout_s * ROUNDING <= sharding_s).all()
    assert (sharding_s * ROUNDING <= leaf_s).all()
    fits = np.isfinite(outcomes.fastest_s)
    assert np.isfinite(leaf_s[fits]).all(), "a strategy that fits was ruled out by the memory bound"
    assert (leaf_s[fits] * ROUNDING <= outcomes.fastest_s[fits]).all()
    with_memory_s = _layout_bounds_s(problem, outcomes)
    assert (layout_s * ROUNDING <= with_memory_s).all()
    assert (with_memory_s[fits] * ROUNDING <= outcomes.fastest_s[fits]).all()
    return int(fits.sum())


def _check_cutoff(problem: Problem, outcomes: Outcomes) -> None:
    """A cutoff may rule out what is not faster than it, and nothing else."""
    fits = np.isfinite(outcomes.fastest_s)
    if not fits.any():
        return
    limit = memory_limit_bytes(problem, outcomes.costs.hardware)
    terms = BoundTerms(outcomes.costs, outcomes.rows, outcomes.costs.rows(outcomes.rows))
    for cutoff_s in np.quantile(outcomes.fastest_s[fits], [0.1, 0.5, 0.9]):
        bounds = lower_bounds_s(terms, limit, float(cutoff_s))
        faster = outcomes.fastest_s < cutoff_s * ROUNDING
        assert (bounds[faster] * ROUNDING <= outcomes.fastest_s[faster]).all()
        bounds = _layout_bounds_s(problem, outcomes, float(cutoff_s))
        assert (bounds[faster] * ROUNDING <= outcomes.fastest_s[faster]).all()


def _check_memory(outcomes: Outcomes) -> None:
    if len(outcomes.rows) == 0:
        return
    cores = _plainest(outcomes.rows, "relief", *SHARDING, *CORE)
    leanest = BoundTerms(outcomes.costs, cores, outcomes.costs.rows(cores), leanest_tail=True).leanest_bytes()
    above = leanest * ROUNDING > outcomes.least_bytes
    assert not above.any(), _first(outcomes, leanest, above)


def _first(outcomes: Outcomes, leanest: NDArray[np.float64], above: NDArray[np.bool_]) -> str:
    index = int(np.flatnonzero(above)[0])
    row = {field.name: int(getattr(outcomes.rows, field.name)[index]) for field in fields(StrategyRows)}
    row["schedule"] = SCHEDULE_NAMES[row["schedule"]]  # type: ignore[assignment]
    return (
        f"{int(above.sum())} of {len(above)} strategies fit in less than their core's leanest memory;"
        f" {outcomes.least_bytes[index]:.4g} < {leanest[index]:.4g} for {row}"
    )


Enumerated = tuple[Problem, Outcomes]


@pytest.fixture(scope="module", params=drawn(range(1000, 1016), 4, kept=(1000, 1003, 1011)))
def small(request: pytest.FixtureRequest) -> Enumerated:
    """A problem and what every strategy of it can reach, once for all tests of it."""
    problem = _problem(request.param)
    return problem, all_outcomes(problem)


def test_each_level_is_below_everything_under_it(small: Enumerated) -> None:
    _check_time(*small)


def test_a_cutoff_rules_out_only_what_is_slower(small: Enumerated) -> None:
    _check_cutoff(*small)


def test_no_strategy_needs_less_memory_than_its_core_is_said_to(small: Enumerated) -> None:
    _check_memory(small[1])


@pytest.mark.parametrize("seed", drawn(range(1000, 1012), 3, kept=(1000, 1003)))
def test_bounds_hold_with_a_calibration(seed: int) -> None:
    problem = _problem(seed, with_factors=True)
    outcomes = all_outcomes(problem)
    _check_time(problem, outcomes)
    _check_cutoff(problem, outcomes)
    _check_memory(outcomes)


UNDER_PHYSICS = list(itertools.product(sorted(physics_by_name()), PHYSICS_SEEDS))
ONCE_EACH = drawn(UNDER_PHYSICS, len(physics_by_name()), kind=itemgetter(0))


@pytest.mark.parametrize(("physics", "seed"), ONCE_EACH)
def test_bounds_hold_under_the_physics_of_every_back_end(physics: str, seed: int) -> None:
    problem = _problem(seed)
    outcomes = all_outcomes(problem, hardware_under(problem, physics_by_name()[physics]))
    assert len(outcomes.rows) > 0
    _check_time(problem, outcomes)
    _check_memory(outcomes)


@pytest.mark.parametrize("physics", ["tuned", "torchtitan-compiled"])
def test_a_deep_model_sharded_with_its_optimizer_on_the_host_is_not_ruled_out(physics: str) -> None:
    """Where the states of many layers outweigh what is gathered of one, nothing hides a wrong state a parameter."""
    problem = Problem(
        model=load_model("llama-3.1-70b"),
        cluster=load_cluster("aws-p5"),
        workload=Workload(global_batch_size=8, sequence_length=2048),
    )
    strategy = Strategy(
        dp_shard=8, zero_stage=3, num_microbatches=1, optimizer_offload=True, recompute="full", tp=1, pp=1
    )
    context = strategy_context(problem, hardware_under(problem, physics_by_name()[physics]), strategy)
    layers = problem.model.num_layers
    leaf = evaluate_split(context, Split(chunk_layers=(layers,), relieved=(layers,)))
    core = _plainest(context.row, "relief", *SHARDING, *CORE)
    terms = BoundTerms(context.costs, core, context.costs.rows(core), leanest_tail=True)
    assert terms.leanest_bytes()[0] <= leaf.peak_memory_bytes


@pytest.mark.slow
def test_bounds_of_many_problems() -> None:
    feasible = 0
    # The one that is kept has the most strategies.
    for seed in drawn(range(2000, 2100), 5, kept=(2091,)):
        problem = _problem(seed)
        outcomes = all_outcomes(problem)
        feasible += _check_time(problem, outcomes)
        _check_cutoff(problem, outcomes)
        _check_memory(outcomes)
    assert feasible > 10_000
