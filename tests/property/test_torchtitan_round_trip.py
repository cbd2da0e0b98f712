"""Do the files of both dialects say exactly the projected plan?"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.backends.torchtitan import VERSIONS, emit, project, read_back, rule_input, violations
from planner.backends.torchtitan.write import violations_for
from planner.plan import Plan
from planner.strategy import LOOPED_SCHEDULES, V_SCHEDULES
from tests.plan_strategies import plans
from tests.round_trip import (
    assert_ends_in_place,
    assert_needs_no_second_projection,
    assert_same_fields,
    outcomes_of_reading_back,
)
from tests.torchtitan_cases import random_plan

_MODEL_RULES = [f"M{number}" for number in range(1, 9)]
WITHOUT_NEIGHBOUR = {
    f"torchtitan.{rule}" for rule in ["G1", "T1", "T2", "C1", "C3", "E1", "E2", "E4", "P5", "L1", "L2", *_MODEL_RULES]
}


@st.composite
def near_plans(draw: st.DrawFn) -> Plan:
    """Mostly what torchtitan can say; the switches and stages that it cannot are drawn too."""
    plan = random_plan(random.Random(draw(st.integers(0, 2**32))))
    changed = replace(
        plan.chosen(),
        zero_stage=draw(st.integers(0, 3)),
        overlap_grad_reduce=draw(st.booleans()),
        overlap_ep=draw(st.booleans()),
        optimizer_offload=draw(st.sampled_from([False, False, True])),
    )
    keep = draw(st.booleans())
    return plan if keep else plan.model_copy(update={"strategy": changed.to_dict()})


@pytest.mark.parametrize("version", VERSIONS)
def test_reading_back_gives_the_emitted_plan(version: str) -> None:
    outcomes = outcomes_of_reading_back(
        st.one_of(*[near_plans()] * 5, plans()),
        lambda plan: emit(plan, "torchrun", version),
        read_back,
        refusals=lambda plan: violations_for(project(plan, version)[0], version),
        max_examples=400,
    )
    assert outcomes["emitted"] >= 60, outcomes
    assert outcomes["as wanted"] >= 12, outcomes
    assert outcomes["refused"] >= 20, outcomes


@pytest.mark.parametrize("version", VERSIONS)
@given(plan=st.one_of(near_plans(), plans()))
def test_a_projected_plan_needs_no_projection(version: str, plan: Plan) -> None:
    assert_needs_no_second_projection(lambda each: project(each, version), plan)


@given(st.one_of(near_plans(), plans()))
def test_a_projection_repairs_every_rule_that_has_a_neighbour(plan: Plan) -> None:
    s = plan.chosen()
    if s.pp > 1 and (s.vpp > 1) != (s.schedule in LOOPED_SCHEDULES | V_SCHEDULES):
        return
    assert {finding.rule for finding in violations(rule_input(project(plan)[0]))} <= WITHOUT_NEIGHBOUR


@given(plans())
def test_a_projection_keeps_layers_and_ranks_and_saves_no_more_activations(plan: Plan) -> None:
    before, after = plan.chosen(), project(plan)[0]
    strategy = after.chosen()
    assert_same_fields(before, strategy, "tp cp ep pp dp world_size micro_batch_size num_microbatches")
    for old, new in zip(plan.stages, after.stages, strict=True):
        assert sum(chunk.num_layers for chunk in new.chunks) == sum(chunk.num_layers for chunk in old.chunks)
        recomputed = sum(new.recompute.num_layers_per_chunk)
        assert recomputed >= sum(old.recompute.num_layers_per_chunk) or strategy.recompute == "none"
        assert recomputed >= min(old.offload.activation_layers, old.layers)
    assert_ends_in_place(after)
