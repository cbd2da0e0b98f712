from __future__ import annotations

from hypothesis import given

from planner.backends.emission.emission import Emission
from planner.backends.megatron.arguments import parse_arguments
from planner.backends.mindspeed import emit, project, read_back, rule_input, rules, violations
from planner.backends.mindspeed.flag_table import known_flags
from planner.backends.mindspeed.write import ARGUMENTS_FILE
from planner.plan import Plan
from tests.mindspeed_plans import in_bf16_with_adam, on_ascend
from tests.plan_strategies import plans
from tests.round_trip import (
    assert_layers_in_order,
    assert_needs_no_second_projection,
    assert_same_fields,
    outcomes_of_reading_back,
)

KNOWN = set(known_flags("core_v0.12.1"))


def knows_every_flag(emission: Emission) -> None:
    assert set(parse_arguments(emission.files[ARGUMENTS_FILE])) <= KNOWN


def test_reading_back_gives_the_emitted_plan() -> None:
    outcomes = outcomes_of_reading_back(
        plans().map(in_bf16_with_adam).map(on_ascend),
        lambda plan: emit(plan, "torchrun"),
        read_back,
        refusals=lambda plan: violations(rule_input(project(plan)[0])),
        each=knows_every_flag,
    )
    assert outcomes["emitted"] >= 150, outcomes
    assert outcomes["as wanted"] >= 10, outcomes


@given(plans())
def test_a_projected_plan_needs_no_projection(wanted: Plan) -> None:
    assert_needs_no_second_projection(project, on_ascend(wanted))


@given(plans())
def test_a_projection_keeps_the_layers_in_order_and_the_degrees(wanted: Plan) -> None:
    plan = on_ascend(wanted)
    before, after = plan.chosen(), project(plan)[0]
    strategy = after.chosen()
    assert_same_fields(before, strategy, "tp cp ep etp pp dp world_size num_microbatches zero_stage")
    assert_layers_in_order(after)


@given(plans())
def test_every_difference_of_the_strategy_is_told(wanted: Plan) -> None:
    plan = on_ascend(wanted)
    projected, projections = project(plan)
    before, after = plan.chosen().to_dict(), projected.chosen().to_dict()
    differing = {name for name in before if before[name] != after[name]}
    assert differing <= {projection.field for projection in projections}
    assert all(projection.reason for projection in projections)


@given(plans())
def test_rules_over_a_plan_and_over_a_rule_input_agree(wanted: Plan) -> None:
    plan = on_ascend(wanted)
    found = {finding.rule for finding in violations(rule_input(plan))}
    assert found == {rule.id for rule in rules() if rule.check(plan) is not None}
