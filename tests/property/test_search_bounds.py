"""Are the search's bounds bounds?  Each level of the space is below everything under it, in time and in memory.

The truth comes from ``tests.exhaustive_search``: every dealing and every relief of every strategy.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.candidate import Split
from planner.cost.hardware import problem_hardware
from planner.framework.known import FRAMEWORKS
from planner.model.load import load_model
from planner.problem import Problem, Workload
from planner.search.bound import BoundTerms, lower_bounds_s
from planner.search.estimate import strategy_context
from planner.search.evaluate import evaluate_split
from planner.strategy import Strategy
from planner.strategy_rows import SCHEDULES, StrategyRows
from profiles.catalogue import load_cluster
from tests.calibrated_problems import calibrated
from tests.exhaustive_search import Outcomes, all_outcomes
from tests.search_problems import Size, random_problem

ROUNDING = 1 - 1e-9
CORE = ("vpp", "group", "schedule", "pp_inner")
SHARDING = ("dp_replicate", "zero", "overlap_grad", "overlap_param", "optimizer_offload")
PLAIN = {"vpp": 1, "dp_replicate": 1, "overlap_grad": 1, "overlap_param": 1}
SMALL = Size(max_devices=8, max_layers=5, max_batch=8)


def _plainest(rows: StrategyRows, *columns: str) -> StrategyRows:
    """The rows with ``columns`` at the value that the search's upper levels give them."""
    return replace(rows, **{name: np.full(len(rows), PLAIN.get(name, 0)) for name in columns})


def _usable_bytes(outcomes: Outcomes, margin: float) -> float:
    return outcomes.costs.hardware.memory_bytes * (1 - margin)


def _levels(outcomes: Outcomes) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of core, layout and sharding of every strategy, as the search computes them."""
    costs, rows = outcomes.costs, outcomes.rows
    cores = _plainest(rows, "relief", *SHARDING, *CORE)
    layouts, shardings = _plainest(rows, "relief", *SHARDING), _plainest(rows, "relief")
    core = BoundTerms(costs, cores, costs.rows(cores), with_tail=False)
    core_s = cores.num_microbatches * core.total_s / cores.pp + core.leanest_tail_s()
    layout = BoundTerms(costs, layouts, costs.rows(layouts), with_tail=False)
    layout_s = layout.loose_s + layout.leanest_tail_s()
    sharding_s = BoundTerms(costs, shardings, costs.rows(shardings)).loose_s
    return core_s, layout_s, sharding_s


def _problem(seed: int, *, with_factors: bool = False) -> Problem:
    problem = random_problem(seed, SMALL, "any")
    return calibrated(problem, seed) if with_factors else problem


def _check_time(problem: Problem) -> int:
    outcomes = all_outcomes(problem)
    if len(outcomes.rows) == 0:
        return 0
    limit = _usable_bytes(outcomes, problem.constraints.memory_margin_fraction)
    core_s, layout_s, sharding_s = _levels(outcomes)
    leaf = BoundTerms(outcomes.costs, outcomes.rows, outcomes.costs.rows(outcomes.rows))
    leaf_s = lower_bounds_s(leaf, limit)
    assert (core_s * ROUNDING <= layout_s).all()
    assert (layout_s * ROUNDING <= sharding_s).all()
    assert (sharding_s * ROUNDING <= leaf_s).all()
    fits = np.isfinite(outcomes.fastest_s)
    assert np.isfinite(leaf_s[fits]).all(), "a strategy that fits was ruled out by the memory bound"
    assert (leaf_s[fits] * ROUNDING <= outcomes.fastest_s[fits]).all()
    return int(fits.sum())


def _check_cutoff(problem: Problem) -> None:
    """A cutoff may rule out what is not faster than it, and nothing else."""
    outcomes = all_outcomes(problem)
    fits = np.isfinite(outcomes.fastest_s)
    if not fits.any():
        return
    limit = _usable_bytes(outcomes, problem.constraints.memory_margin_fraction)
    terms = BoundTerms(outcomes.costs, outcomes.rows, outcomes.costs.rows(outcomes.rows))
    for cutoff_s in np.quantile(outcomes.fastest_s[fits], [0.1, 0.5, 0.9]):
        bounds = lower_bounds_s(terms, limit, float(cutoff_s))
        faster = outcomes.fastest_s < cutoff_s * ROUNDING
        assert (bounds[faster] * ROUNDING <= outcomes.fastest_s[faster]).all()


def _check_memory(problem: Problem) -> None:
    outcomes = all_outcomes(problem)
    if len(outcomes.rows) == 0:
        return
    cores = _plainest(outcomes.rows, "relief", *SHARDING, *CORE)
    leanest = BoundTerms(outcomes.costs, cores, outcomes.costs.rows(cores), with_tail=False).leanest_bytes()
    above = leanest * ROUNDING > outcomes.least_bytes
    assert not above.any(), _first(outcomes, leanest, above)


def _first(outcomes: Outcomes, leanest: NDArray[np.float64], above: NDArray[np.bool_]) -> str:
    index = int(np.flatnonzero(above)[0])
    row = {field.name: int(getattr(outcomes.rows, field.name)[index]) for field in fields(StrategyRows)}
    row["schedule"] = SCHEDULES[row["schedule"]]  # type: ignore[assignment]
    return (
        f"{int(above.sum())} of {len(above)} strategies fit in less than their core's leanest memory;"
        f" {outcomes.least_bytes[index]:.4g} < {leanest[index]:.4g} for {row}"
    )


@pytest.mark.parametrize("seed", range(1000, 1016))
def test_each_level_is_below_everything_under_it(seed: int) -> None:
    _check_time(_problem(seed))


@pytest.mark.parametrize("seed", range(1000, 1008))
def test_a_cutoff_rules_out_only_what_is_slower(seed: int) -> None:
    _check_cutoff(_problem(seed))


@pytest.mark.parametrize("seed", range(1000, 1016))
def test_no_strategy_needs_less_memory_than_its_core_is_said_to(seed: int) -> None:
    _check_memory(_problem(seed))


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_bounds_hold_with_a_calibration(seed: int) -> None:
    problem = _problem(seed, with_factors=True)
    _check_time(problem)
    _check_cutoff(problem)
    _check_memory(problem)


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_bounds_hold_with_the_traits_of_every_framework(framework: str) -> None:
    for seed in range(1020, 1024):
        problem = _problem(seed).model_copy(update={"framework": framework})
        _check_time(problem)
        _check_memory(problem)


@pytest.mark.parametrize("framework", ["tuned", "torchtitan"])
def test_a_deep_model_sharded_with_its_optimizer_on_the_host_is_not_ruled_out(framework: str) -> None:
    """Where the states of many layers outweigh what is gathered of one, nothing hides a wrong state a parameter."""
    problem = Problem(
        model=load_model("llama-3.1-70b"),
        cluster=load_cluster("aws-p5"),
        workload=Workload(global_batch_size=8, sequence_length=2048),
        framework=framework,
    )
    strategy = Strategy(
        dp_shard=8, zero_stage=3, num_microbatches=1, optimizer_offload=True, recompute="full", tp=1, pp=1
    )
    context = strategy_context(problem, problem_hardware(problem), strategy)
    layers = problem.model.num_layers
    leaf = evaluate_split(context, Split(chunk_layers=(layers,), relieved=(layers,)))
    core = _plainest(context.row, "relief", *SHARDING, *CORE)
    terms = BoundTerms(context.costs, core, context.costs.rows(core), with_tail=False)
    assert terms.leanest_bytes()[0] <= leaf.peak_memory_bytes


@pytest.mark.slow
def test_bounds_of_many_problems() -> None:
    feasible = 0
    for seed in range(2000, 2100):
        feasible += _check_time(_problem(seed))
        _check_cutoff(_problem(seed))
        _check_memory(_problem(seed))
    assert feasible > 10_000
