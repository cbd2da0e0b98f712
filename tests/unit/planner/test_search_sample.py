from __future__ import annotations

from itertools import islice

import pytest

from planner.backends.rules.legality import broken_rules, model_shape
from planner.model.load import load_model
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from planner.search.backend_rules import BackEndRules
from planner.search.sample import random_plans, random_strategies
from planner.strategy.rows import StrategyRows, relief_of
from profiles.catalogue import load_cluster


def problem(model: str = "mixtral-8x7b", **constraints: object) -> Problem:
    return Problem(
        model=load_model(model),
        cluster=load_cluster("dgx-h100", 32),
        workload=Workload(global_batch_size=64, sequence_length=4096),
        constraints=Constraints.model_validate({"backends": (UNRESTRICTED,), **constraints}),
    )


def test_drawn_strategies_are_legal_and_fill_the_cluster() -> None:
    asked = problem()
    shape = model_shape(asked.model, asked.workload, 32)
    for strategy in islice(random_strategies(asked, 1), 200):
        assert strategy.world_size == 32
        assert strategy.global_batch_size == 64
        row = StrategyRows.of([strategy], (relief_of(strategy),))
        assert not any(broken[0] for _, broken in broken_rules(row, shape))


def test_the_same_seed_draws_the_same() -> None:
    first, again, other = (list(islice(random_strategies(problem(), seed), 50)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_rare_values_are_drawn() -> None:
    drawn = list(islice(random_strategies(problem(), 0), 300))
    assert {strategy.zero_stage for strategy in drawn} == {0, 1, 2, 3}
    assert {"1f1b", "interleaved", "zbv"} <= {strategy.schedule for strategy in drawn}
    assert {strategy.ep for strategy in drawn} == {1, 2, 4, 8}


@pytest.mark.parametrize("backend", ["megatron", "deepspeed", "native", "torchtitan", "accelerate"])
def test_drawn_plans_fit_and_obey_the_back_end(backend: str) -> None:
    asked = problem("llama-3.1-8b", backends=(backend,))
    rules = BackEndRules(asked)
    plans = list(random_plans(asked, 0, 150))
    assert plans
    for plan in plans:
        assert plan.peak_memory_bytes <= plan.memory_limit_bytes
        assert rules.messages(plan.chosen()) == []


def test_pins_that_leave_nothing_end_the_draw() -> None:
    assert list(random_strategies(problem("llama-3.1-8b", pins={"tp": 7}), 0)) == []
