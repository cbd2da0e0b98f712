from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planner.backends.megatron import emit, project, read_back, rule_input, rules, violations
from planner.backends.megatron.layout import layout_string, parse_layout
from planner.plan import ChunkPlan, Plan
from tests.plan_strategies import plans
from tests.round_trip import (
    assert_layers_in_order,
    assert_needs_no_second_projection,
    assert_same_fields,
    outcomes_of_reading_back,
)


def test_reading_back_gives_the_emitted_plan() -> None:
    outcomes = outcomes_of_reading_back(
        plans(),
        lambda plan: emit(plan, "torchrun"),
        read_back,
        refusals=lambda plan: violations(rule_input(project(plan)[0])),
    )
    assert outcomes["emitted"] >= 150, outcomes
    assert outcomes["as wanted"] >= 10, outcomes


@given(plans())
def test_a_projected_plan_needs_no_projection(plan: Plan) -> None:
    assert_needs_no_second_projection(project, plan)


@given(plans())
def test_a_projection_keeps_the_layers_in_order_and_the_degrees(plan: Plan) -> None:
    before, after = plan.chosen(), project(plan)[0]
    strategy = after.chosen()
    assert_same_fields(before, strategy, "tp cp ep etp pp dp world_size num_microbatches zero_stage")
    assert_layers_in_order(after)


@given(plans())
def test_rules_over_a_plan_and_over_a_rule_input_agree(plan: Plan) -> None:
    found = {finding.rule for finding in violations(rule_input(plan))}
    assert found == {rule.id for rule in rules() if rule.check(plan) is not None}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=20))
def test_layout_strings_parse_back(counts: list[tuple[int, int]]) -> None:
    chunks = []
    first = 0
    for index, (layers, mtp) in enumerate(counts):
        last = index == len(counts) - 1
        chunks.append(
            ChunkPlan(
                chunk=index,
                first_layer=first,
                num_layers=layers,
                has_embedding=index == 0,
                has_head=last,
                num_mtp_layers=mtp if last else 0,
            )
        )
        first += layers
    assert parse_layout(layout_string(chunks), "here") == tuple(chunks)
