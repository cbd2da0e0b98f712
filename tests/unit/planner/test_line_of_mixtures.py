"""The bound of a mixture whose first layers are dense, against the exact search over its dealings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.backends.asked import problem_hardware
from planner.model.load import load_model
from planner.question.problem import Constraints, Problem, Workload
from planner.search.bound import BoundTerms
from planner.search.line_bound import LineBound
from planner.search.line_split import LeftOpen, _best_line
from planner.search.row_context import strategy_context
from planner.search.split_limits import split_rules
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster

NEAR = 1e-9


def question(layers: int) -> Problem:
    """GLM-4.5 with three dense layers and as many with experts as make so many."""
    model = load_model("glm-4.5")
    dense, experts = model.layer_runs
    runs = dense, experts.model_copy(update={"count": layers - dense.count})
    return Problem(
        model=model.model_copy(update={"layer_runs": runs}),
        cluster=load_cluster("dgx-h100", 64),
        workload=Workload(global_batch_size=256, sequence_length=4096),
        constraints=Constraints(backends=("megatron",)),
    )


def least_s(bound: LineBound, count: int | None, cutoff_s: float) -> float:
    """Bound of the dealings that relieve so many layers of each stage; None: nothing relieves."""
    pairs = bound.pairs(cutoff_s)
    relieved = bound.num_layers if count is None else count
    return float(pairs.step_s[pairs.relieved == relieved].min(initial=np.inf))


def strategies() -> list[Strategy]:
    """One chunk a device on 8 stages."""
    found = []
    for tp, dp, ep in ((1, 8, 8), (2, 4, 4), (4, 2, 8), (2, 4, 8)):
        for recompute in ("none", "full"):
            degrees = Strategy(tp=tp, sp=tp > 1, dp_shard=dp, ep=ep, pp=8, num_microbatches=256 // dp, zero_stage=1)
            found.append(replace(degrees, schedule="1f1b", recompute=recompute))
    return found


@pytest.mark.parametrize("layers", [17, 21, 30, 34])
def test_the_best_dealing_is_within_the_bound_and_the_bound_near_it(layers: int) -> None:
    problem = question(layers)
    hardware, rules = problem_hardware(problem), split_rules(problem, problem_hardware(problem))
    assert rules.uniform
    compared = near = value_near = 0
    for strategy in strategies():
        context = strategy_context(problem, hardware, strategy)
        tail_s = BoundTerms(context.costs, context.row, context.cost).tail_s
        bound = LineBound(context.costs, rules, context.row, context.cost, tail_s)
        assert bound._line is not None
        for count in range(4) if strategy.recompute == "full" else (None,):
            best = _best_line(context, rules, np.inf, count, LeftOpen())
            if best is None:
                continue
            bound_s = least_s(bound, count, best.step_time_s * (1 + NEAR))
            assert bound_s <= best.step_time_s * (1 + NEAR)
            value_near += bound_s >= best.step_time_s * 0.97
            near += bool(np.isinf(least_s(bound, count, best.step_time_s * 0.97)))
            compared += 1
    assert compared > 8
    assert near > compared // 2
    # The value orders the strategies that are kept for each set of degrees: it is to be as near as the cut.
    assert value_near > compared // 2
