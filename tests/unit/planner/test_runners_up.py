"""Are there as many runners-up as were asked for, beside the plans that are shown?  Real searches."""

from __future__ import annotations

import pytest

from planner.model.load import load_model
from planner.plan import Plan
from planner.problem import Constraints, Objective, Preference, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster

KINDS = ("tp", "cp", "pp", "ep", "etp", "dp")


def planned(top_k: int, prefer: Preference) -> Plan:
    problem = Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-a100-80g", 8),
        workload=Workload(global_batch_size=64, sequence_length=4096),
        constraints=Constraints(backends=("torchtitan",)),
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
