"""Every plan of MaxText's space reaches its file and comes back; every other plan is refused with rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st

from planner.backends.emission.emission import PLAN_JSON
from planner.backends.maxtext.read import read_back
from planner.backends.maxtext.space import violations
from planner.backends.rules.rule import rule_input
from planner.plan.plan import Plan
from tests.drawn_from_space import drawn_plans, question
from tests.emitter import emitter
from tests.plan_factory import make_plan
from tests.plan_strategies import plans
from tests.round_trip import as_spelled, assert_comes_back, outcomes_of_reading_back

emit = emitter("maxtext")

ARCHITECTURES = ("tpu_v5p", "tpu_7x", "hopper", "cdna3")


def on(plan: Plan, architecture: str, domain: int) -> Plan:
    """The same plan on another device, its scale-up domain larger or smaller."""
    cluster = plan.problem.cluster
    pool = cluster.pools[0]
    pool = pool.model_copy(
        update={
            "device": pool.device.model_copy(update={"architecture": architecture}),
            "scale_up": pool.scale_up.model_copy(update={"domain_size": domain}),
        }
    )
    problem = plan.problem.model_copy(update={"cluster": cluster.model_copy(update={"pools": (pool,)})})
    return plan.model_copy(update={"problem": problem})


@st.composite
def near_maxtext_plans(draw: st.DrawFn) -> Plan:
    """Any plan, or one with equal stages and the switches that MaxText leaves no choice about."""
    plan = draw(plans())
    s = plan.chosen()
    if draw(st.booleans()):
        settled = replace(
            s,
            sp=s.tp > 1,
            etp=s.tp if plan.problem.model.has_experts else 1,
            zero_stage=3,
            schedule="1f1b" if s.pp == 1 else "looped_bfs" if s.vpp > 1 else "gpipe",
            recompute="full",
            recompute_modules=(),
            activation_offload=False,
            overlap_param_gather=True,
            overlap_tp=False,
            microbatch_group_size=0,
        )
        workload = plan.problem.workload.model_copy(update={"precision": "bf16", "optimizer": "adam"})
        plan = make_plan(settled, plan.problem.model, plan.problem.cluster, workload)
    plan = on(plan, draw(st.sampled_from(ARCHITECTURES)), draw(st.sampled_from([2, 4, 8, 64])))
    return as_spelled(plan, "maxtext")


def test_reading_back_gives_the_emitted_plan() -> None:
    outcomes = outcomes_of_reading_back(
        near_maxtext_plans(),
        lambda plan: emit(plan, "torchrun"),
        lambda files: read_back({name: text for name, text in files.items() if name != PLAN_JSON}),
        refusals=lambda plan: violations(rule_input(plan)),
        max_examples=600,
    )
    assert outcomes["emitted"] >= 5, outcomes
    assert outcomes["refused"] >= 20, outcomes


@pytest.mark.parametrize(
    ("model", "cluster", "devices"),
    [
        ("llama-3.1-8b", "dgx-h100", 16),
        ("llama-3.1-70b", "tpu-v5p", 64),
        ("mixtral-8x7b", "tpu-v5p", 32),
        ("deepseek-v2", "tpu-v5p", 256),
    ],
)
def test_every_plan_of_the_space_is_written_and_comes_back(model: str, cluster: str, devices: int) -> None:
    problem = question(model, cluster, devices)
    seen = [assert_comes_back(plan) for plan in drawn_plans(problem, "maxtext", wanted=12)]
    assert len(seen) >= 3
