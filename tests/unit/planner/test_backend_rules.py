"""Every rule of a back-end leads to a field of the strategy that breaks it."""

from __future__ import annotations

import random
from dataclasses import fields
from itertools import islice
from typing import Any, get_args

import pytest

from planner.backends.registry import names_with_files
from planner.model.builtin import builtin_model
from planner.question.problem import Constraints, Problem, Workload
from planner.search.backend_rules import BackEndRules
from planner.search.sample import random_strategies
from planner.strategy.schedules import ScheduleName
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster

VALUES: dict[str, tuple[Any, ...]] = {
    "tp": (1, 2, 3, 8),
    "sp": (False, True),
    "cp": (1, 2),
    "cp_kind": ("none", "ring", "all_to_all"),
    "ep": (1, 2, 3),
    "etp": (1, 2),
    "pp": (1, 2, 4),
    "vpp": (1, 2),
    "dp_shard": (1, 2, 4),
    "dp_replicate": (1, 2),
    "micro_batch_size": (1, 2, 3),
    "num_microbatches": (1, 4, 7),
    "schedule": get_args(ScheduleName),
    "microbatch_group_size": (0, 2, 4),
    "zero_stage": (0, 1, 2, 3),
    "recompute": ("none", "selective", "full"),
    "recompute_modules": ((), ("norm",), ("mlp", "norm")),
    "optimizer_offload": (False, True),
    "activation_offload": (False, True),
    "overlap_grad_reduce": (False, True),
    "overlap_param_gather": (False, True),
    "overlap_tp": (False, True),
    "overlap_ep": (False, True),
    "axis_order": ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"),
}
CLUSTERS = {"mindspeed": "ascend-910b-8"}


def _rules(backend: str, model: str) -> BackEndRules:
    workload = Workload(global_batch_size=512, sequence_length=4096)
    constraints = Constraints(backends=(backend,))
    cluster = load_cluster(CLUSTERS.get(backend, "dgx-h100"), 64)
    return BackEndRules(
        Problem(
            model=builtin_model(model),
            cluster=cluster,
            workload=workload,
            constraints=constraints,
        )
    )


@pytest.mark.parametrize("backend", names_with_files())
@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])
def test_every_broken_rule_leads_to_a_field(backend: str, model: str) -> None:
    chance = random.Random(1)
    rules = _rules(backend, model)
    always, seen = {each.partition(":")[0] for each in rules.always()}, set()
    known = {each.name for each in fields(Strategy)} | {"dp"}
    for _ in range(100):
        strategy = Strategy(**{name: chance.choice(values) for name, values in VALUES.items()})
        for found in rules.broken(strategy):
            if found.rule not in always:
                assert found.fields, f"{found.rule} names no field: {found.message}"
                assert set(found.fields) <= known, found.rule
                seen.add(found.rule)
    assert len(seen) >= 5


@pytest.mark.parametrize("backend", names_with_files())
def test_one_spelling_is_the_same_strategy_and_stays(backend: str) -> None:
    """Of what the back-end runs: no degree or size is changed, and what is spelled stays."""
    rules, looked_at = _rules(backend, "llama-3.1-8b"), 0
    for strategy in islice(random_strategies(rules.problem, 2), 300):
        if rules.refuses(strategy):
            continue
        looked_at += 1
        spelled = rules.spelled(strategy)
        assert rules.spelled(spelled) == spelled
        assert not rules.refuses(spelled)
        for name in ("tp", "cp", "ep", "etp", "pp", "vpp", "dp", "micro_batch_size", "num_microbatches", "schedule"):
            assert getattr(spelled, name) == getattr(strategy, name), name
    assert looked_at > 3
