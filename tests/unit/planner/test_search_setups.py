"""A strategy that shares its costs with others is costed as if alone: to the last bit, in the same order."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from planner.backends.registry import physics_by_name
from planner.model.load import load_model
from planner.predict.cost.hardware import problem_hardware
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from planner.search.bound import BoundTerms
from planner.search.branch import Search
from planner.search.options import SearchOptions
from planner.search.setups import SharedSetups, layouts_by_setup, shardings_by_setup
from planner.strategy.rows import COLUMNS, StrategyRows
from profiles.catalogue import load_cluster

PROBLEMS = (
    ("llama-3.2-1b", "tuned"),  # ties its embedding: a table is reduced between first and last stage, but not in a V
    ("mixtral-8x7b", "tuned"),
    ("llama-3.1-8b", "torchtitan-compiled"),  # each moment of a step is billed for itself
    ("llama-3.1-8b", "megatron-deepspeed-pipeline"),
)


def _search(model: str, physics: str) -> Search:
    problem = Problem(
        model=load_model(model),
        cluster=load_cluster("dgx-h100", 16),
        workload=Workload(global_batch_size=16, sequence_length=2048),
        constraints=Constraints(backends=(UNRESTRICTED,)),
    )
    return Search(problem, problem_hardware(problem, physics_by_name()[physics]), SearchOptions())


def _differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Columns of two dataclasses of arrays that are not equal in every bit."""
    if is_dataclass(one):
        return [
            each
            for field in fields(one)
            for each in _differences(getattr(one, field.name), getattr(other, field.name), f"{where}/{field.name}")
        ]
    return [] if (one is None and other is None) or np.array_equal(one, other) else [where]


def _check(shared: SharedSetups, rows: StrategyRows, alone: BoundTerms) -> None:
    together = shared.bound_terms(np.arange(len(rows)))
    assert [name for name in COLUMNS if not np.array_equal(getattr(together.rows, name), getattr(rows, name))] == []
    assert _differences(together.cost, alone.cost.under_schedules(rows)) == []
    for name in ("total_s", "mean_dense", "mean_expert", "tail_s", "loose_s"):
        assert np.array_equal(getattr(together, name), getattr(alone, name)), name
    assert len(shared.terms.rows) < len(rows)


@pytest.mark.parametrize(("model", "physics"), PROBLEMS)
def test_layouts_that_share_a_setup(model: str, physics: str) -> None:
    search = _search(model, physics)
    table, key = search.costs.keyed(search.space.cores)
    layouts, key = search.space.layouts(search.space.cores, key)
    alone = BoundTerms(search.costs, layouts, search.costs.rows(layouts, (table, key)), leanest_tail=True)
    _check(layouts_by_setup(search.costs, layouts, (table, key)), layouts, alone)


@pytest.mark.parametrize(("model", "physics"), PROBLEMS)
def test_shardings_that_share_a_setup(model: str, physics: str) -> None:
    search, counted = _search(model, physics), _search(model, physics)
    table, key = search.costs.keyed(search.space.cores)
    layouts, key = search.space.layouts(search.space.cores, key)
    picked = np.random.default_rng(0).permutation(len(layouts))[:600]
    layouts, key = layouts.take(picked), key[picked]
    search.space.illegal.clear()
    shared = shardings_by_setup(search.costs, search.space, layouts, (table, key), None)
    assert shared is not None
    rows, of_row = counted.space.shardings(layouts, key)
    alone = BoundTerms(search.costs, rows, search.costs.rows(rows, (table, of_row)))
    _check(shared, rows, alone)
    assert search.space.illegal == counted.space.illegal


def test_offloaded_twins_are_costed_for_themselves() -> None:
    search = _search("llama-3.1-8b", "tuned")
    table, key = search.costs.keyed(search.space.cores)
    layouts, key = search.space.layouts(search.space.cores, key)
    shared = shardings_by_setup(search.costs, search.space, layouts, (table, key), (0,))
    assert shared is not None
    on_the_host_s = shared.loose_s + shared.terms.offload_s()[shared.setup]
    twins = shared.offloaded(float(np.median(on_the_host_s)))
    assert twins is not None
    terms = twins.bound_terms(np.arange(len(twins.setup)))
    assert (terms.rows.optimizer_offload == 1).all()
    assert (terms.rows.zero > 0).all()
    alone = BoundTerms(search.costs, terms.rows, search.costs.rows(terms.rows, (table, terms.cost.key)))
    assert _differences(terms.cost, alone.cost) == []
    assert np.array_equal(terms.loose_s, alone.loose_s)
    assert shared.offloaded(0.0) is None


def test_promising_rows_are_those_that_fit_and_are_fast() -> None:
    search = _search("llama-3.1-8b", "tuned")
    table, key = search.costs.keyed(search.space.cores)
    layouts, key = search.space.layouts(search.space.cores, key)
    shared = shardings_by_setup(search.costs, search.space, layouts, (table, key), None)
    assert shared is not None
    terms = shared.bound_terms(np.arange(len(shared.setup)))
    held = terms.cost.fixed_bytes + terms.mean_state_bytes()
    below_s, limit_bytes = float(np.median(terms.loose_s)), float(np.median(held))
    at = shared.promising(below_s, limit_bytes)
    expected = np.flatnonzero((terms.loose_s < below_s) & (held <= limit_bytes))
    assert 0 < len(at) < len(held)
    assert np.array_equal(np.sort(at), expected)
    assert (np.diff(terms.rows.pp[at]) >= 0).all()
