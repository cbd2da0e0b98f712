"""No link that gets worse makes a plan faster: not a given strategy, and not the best one."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.sample import random_strategies
from planner.strategy.text import complete_strategy, parse_assignments
from profiles.catalogue import load_cluster
from profiles.cluster import Cluster, FabricLevel
from profiles.validation import FindingsInvalid
from tests.sampling import drawn
from tests.search_problems import Size, random_problem

FASTEST = SearchOptions(top_k=0, compare=False)
ROUNDING = 1 - 1e-9
SEEDS = (201, 202, 203, 206, 212, 215, 218, 224, 225, 228, 231, 232, 234, 236, 239)
"""Random questions on several nodes that have a plan."""
TIERS = (FabricLevel(name="leaf", num_nodes=2, latency_s=0.0), FabricLevel(name="spine", num_nodes=4, latency_s=0.0))


def worse_fabrics(cluster: Cluster) -> dict[str, Cluster]:
    """The cluster with one thing of its network worse, by what that is; a tier more is no better either."""
    pool = cluster.pools[0]
    scale_up = pool.scale_up.model_copy(
        update={"bandwidth_bytes_per_s": pool.scale_up.bandwidth_bytes_per_s / 3, "pair_bandwidth_bytes_per_s": None}
    )
    links: dict[str, dict[str, Any]] = {
        "NIC": {"nic_bandwidth_bytes_per_s": pool.nic_bandwidth_bytes_per_s / 2},
        "latency": {"nic_latency_s": 4 * pool.nic_latency_s},
        "scale-up": {"scale_up": scale_up},
    }
    found = {name: cluster.model_copy(update={"pools": (pool.model_copy(update=new),)}) for name, new in links.items()}
    blocked = tuple(tier.model_copy(update={"oversubscription": 7 * tier.oversubscription}) for tier in cluster.fabric)
    found["tiers"] = cluster.model_copy(update={"fabric": cluster.fabric or TIERS})
    found["oversubscription"] = cluster.model_copy(
        update={"fabric": blocked or (TIERS[0].model_copy(update={"oversubscription": 7.0}), TIERS[1])}
    )
    return found


def _with(problem: Problem, cluster: Cluster) -> Problem:
    return problem.model_copy(update={"cluster": cluster})


def _roomy(seed: int) -> Problem:
    """A random question whose devices hold anything."""
    problem = random_problem(seed, Size(max_devices=16, max_layers=5, max_batch=8))
    pool = problem.cluster.pools[0]
    device = pool.device.model_copy(update={"memory_bytes": 2**40})
    return _with(problem, problem.cluster.model_copy(update={"pools": (pool.model_copy(update={"device": device}),)}))


@pytest.mark.parametrize("seed", drawn(SEEDS, 8))
def test_no_strategy_gets_faster(seed: int) -> None:
    problem = _roomy(seed)
    compared = 0
    for strategy in itertools.islice(random_strategies(problem, seed), 6):
        try:
            before_s = estimate(problem, strategy).step_time_s
        except FindingsInvalid:
            continue
        for name, cluster in worse_fabrics(problem.cluster).items():
            after_s = estimate(_with(problem, cluster), strategy).step_time_s
            assert after_s >= before_s * ROUNDING, (name, strategy)
            compared += 1
    assert compared


@pytest.mark.parametrize("seed", drawn(SEEDS, 5))
def test_no_best_plan_gets_faster(seed: int) -> None:
    problem = _roomy(seed)
    before = _best(problem)
    for name, cluster in worse_fabrics(problem.cluster).items():
        after = _best(_with(problem, cluster))
        assert after.step_time_s >= before.step_time_s * ROUNDING, name


def _best(problem: Problem) -> Plan:
    plan = find_plan(problem, FASTEST)
    assert plan.status == "optimal"
    return plan


def test_pods_behind_a_narrow_spine_are_not_faster() -> None:
    """Llama-3 405B as it was run, on pods of 3,072 GPUs that are 7:1 oversubscribed, and without any such pod."""
    values = parse_assignments(["tp=8,pp=16,dp=128,mbs=1,vpp=8,sp=true,zero=1"], "--strategy")
    strategy, _ = complete_strategy(values, 16384, 2048)
    cluster = load_cluster("dgx-h100", 16384)
    pods = FabricLevel(name="pod", num_nodes=384, oversubscription=7.0, latency_s=0.0)
    seconds = [
        estimate(
            Problem(
                model=load_model("llama-3.1-405b"),
                cluster=cluster.model_copy(update={"fabric": fabric}),
                workload=Workload(global_batch_size=2048, sequence_length=8192),
                constraints=Constraints(backends=("megatron",)),
            ),
            strategy,
            None,
            values,
        ).step_time_s
        for fabric in ((), cluster.fabric, (pods,))
    ]
    assert seconds[1] >= seconds[0] * ROUNDING
    assert seconds[2] >= seconds[0] * ROUNDING
