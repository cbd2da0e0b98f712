"""There are as many runners-up as were asked for, beside the plans that are shown: real searches."""

from __future__ import annotations

from itertools import product

import pytest

from planner.errors import NoFeasiblePlan
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Objective, Preference, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster

KINDS = ("tp", "cp", "pp", "ep", "etp", "dp")


def planned(top_k: int, prefer: Preference, pins: dict[str, int | str | bool] | None = None) -> Plan:
    problem = Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-a100-80g", 8),
        workload=Workload(global_batch_size=64, sequence_length=4096),
        constraints=Constraints(backends=("torchtitan",), pins=pins or {}),
        objective=Objective(prefer=prefer),
    )
    return find_plan(problem, SearchOptions(top_k=top_k))


@pytest.mark.parametrize("prefer", ["recommended", "fastest"])
@pytest.mark.parametrize("top_k", [0, 1, 2, 3, 5, 8])
def test_as_many_runners_up_as_were_asked_for(top_k: int, prefer: Preference) -> None:
    plan = planned(top_k, prefer)
    strategies = [each.strategy for each in plan.alternatives]
    assert len(strategies) == top_k
    if plan.fastest is not None:
        # The recommended plan is of other degrees than the fastest one, and neither is a runner-up of the other.
        strategies.append(plan.fastest.strategy)
    kinds = {tuple(each[name] for name in KINDS) for each in (plan.strategy, *strategies)}
    assert len(kinds) == 1 + len(strategies)
    steps_s = [each.step_time_s for each in plan.alternatives]
    assert steps_s == sorted(steps_s)
    alone = planned(0, prefer)
    assert (plan.strategy, plan.step_time_s, plan.fastest) == (alone.strategy, alone.step_time_s, alone.fastest)


@pytest.mark.slow
def test_every_set_of_degrees_that_has_a_plan_is_a_runner_up_where_so_many_are_asked_for() -> None:
    """Plans that are much slower than the best one too, and none that does not fit."""
    sizes = [(tp, cp, pp) for tp, cp, pp in product((1, 2, 4, 8), repeat=3) if tp * cp * pp in (1, 2, 4, 8)]
    assert len(sizes) == 20
    best_s: dict[tuple[int, ...], float] = {}
    for tp, cp, pp in sizes:
        try:
            found = planned(0, "fastest", {"tp": tp, "cp": cp, "pp": pp})
        except NoFeasiblePlan:
            continue
        best_s[tp, cp, pp] = found.step_time_s
    plan = planned(100, "fastest")
    shown = {tuple(each.strategy[name] for name in ("tp", "cp", "pp")): each.step_time_s for each in plan.alternatives}
    assert len(shown) == len(plan.alternatives)
    assert {*shown, tuple(plan.strategy[name] for name in ("tp", "cp", "pp"))} == set(best_s)
    assert max(shown.values()) > 1.1 * plan.step_time_s
    assert all(step_s >= best_s[kind] * (1 - 1e-9) for kind, step_s in shown.items())
