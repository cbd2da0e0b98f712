"""Reading Megatron-Bridge's overrides back gives the emitted plan, for random plans, expressible or not."""

from __future__ import annotations

from hypothesis import given, settings

from planner.backends.megatron.arguments import parse_arguments, write_arguments
from planner.backends.megatron.flags import sections
from planner.backends.megatron_bridge import emit, project, read_back, rule_input, violations
from planner.backends.megatron_bridge.fields import SPOKEN_OTHERWISE
from planner.backends.megatron_bridge.overrides import OVERRIDES_FILE, arguments_of, parse_overrides
from planner.errors import BackEndRefused
from planner.plan import Plan
from tests.plan_strategies import plans
from tests.round_trip import outcomes_of_reading_back


def test_reading_back_gives_the_emitted_plan() -> None:
    outcomes = outcomes_of_reading_back(
        plans(),
        lambda plan: emit(plan, "torchrun"),
        read_back,
        refusals=lambda plan: violations(rule_input(project(plan)[0])),
    )
    assert outcomes["emitted"] >= 120, outcomes
    assert outcomes["as wanted"] >= 10, outcomes


@given(plans())
@settings(max_examples=100)
def test_the_overrides_say_every_flag_of_megatron_that_has_a_word(plan: Plan) -> None:
    try:
        emission = emit(plan, "torchrun")
    except BackEndRefused:
        return
    said, environment = parse_overrides(emission.files[OVERRIDES_FILE])
    flags = parse_arguments(write_arguments(sections(emission.plan)))
    meant = {flag: words for flag, words in flags.items() if flag not in SPOKEN_OTHERWISE}
    assert dict(arguments_of(said)) == meant
    assert environment == emission.environment
