"""Does every rule of a back-end lead to a field of the strategy that breaks it?"""

from __future__ import annotations

import random
from dataclasses import fields
from typing import Any, get_args

import pytest

from planner.model.builtin import builtin_model
from planner.problem import Constraints, Problem, Target, Workload
from planner.search.target_rules import TargetRules
from planner.strategy import ScheduleName, Strategy
from tests.plan_factory import make_cluster

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
WHOLE_STRATEGY = {"accelerate.P1", "accelerate.P6"}
"""Rules that name no field, and that no field at its default mends: they stand at the strategy."""


@pytest.mark.parametrize("target", [each for each in get_args(Target) if each != "any"])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])
def test_every_broken_rule_leads_to_a_field(target: Target, model: str) -> None:
    chance = random.Random(1)
    workload = Workload(global_batch_size=512, sequence_length=4096)
    constraints = Constraints(target=target)
    rules = TargetRules(
        Problem(model=builtin_model(model), cluster=make_cluster(64), workload=workload, constraints=constraints)
    )
    always, seen = set(rules.always()), set()
    known = {each.name for each in fields(Strategy)} | {"dp"}
    for _ in range(100):
        strategy = Strategy(**{name: chance.choice(values) for name, values in VALUES.items()})
        for message in set(rules.messages(strategy)) - always:
            about = rules.about(strategy, message)
            assert set(about) <= known
            assert about or message.partition(":")[0] in WHOLE_STRATEGY, message
            seen.add(message.partition(":")[0])
    assert len(seen) >= 5


def test_a_rule_that_names_no_field_is_of_those_that_mend_it() -> None:
    workload = Workload(global_batch_size=512, sequence_length=4096)
    problem = Problem(
        model=builtin_model("llama-3.1-8b"),
        cluster=make_cluster(64),
        workload=workload,
        constraints=Constraints(target="maxtext"),
    )
    rules = TargetRules(problem)
    strategy = Strategy(tp=2, sp=True, dp_shard=4, overlap_grad_reduce=False, overlap_param_gather=False)
    said = next(each for each in rules.messages(strategy) if each.startswith("maxtext.O1"))
    assert "overlap_" not in said
    assert rules.about(strategy, said) == ("overlap_grad_reduce", "overlap_param_gather")
