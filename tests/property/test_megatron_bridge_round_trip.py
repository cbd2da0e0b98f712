"""Reading Megatron-Bridge's overrides back gives the plan: random plans, legal or not, and every plan of the space."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import strategies as st

from planner.backends.emission.emission import Emission
from planner.backends.megatron.arguments import parse_arguments, write_arguments
from planner.backends.megatron.flags import sections
from planner.backends.megatron_bridge.fields import SPOKEN_OTHERWISE
from planner.backends.megatron_bridge.overrides import OVERRIDES_FILE, arguments_of, parse_overrides
from planner.backends.megatron_bridge.read import read_back
from planner.backends.megatron_bridge.space import TABLE
from planner.backends.rules.rule import rule_input
from tests.emitter import emitter
from tests.plan_strategies import plans
from tests.round_trip import (
    as_spelled,
    assert_comes_back,
    outcomes_of_reading_back,
    plans_of_the_space,
    question,
)

emit = emitter("megatron-bridge")

OURS = partial(as_spelled, backend="megatron-bridge")


def says_every_flag(emission: Emission) -> None:
    """The overrides say every flag of Megatron that has a word."""
    said, environment = parse_overrides(emission.files[OVERRIDES_FILE])
    flags = parse_arguments(write_arguments(sections(emission.plan)))
    meant = {flag: words for flag, words in flags.items() if flag not in SPOKEN_OTHERWISE}
    assert dict(arguments_of(said)) == meant
    assert environment == emission.written.environment


def test_reading_back_gives_the_emitted_plan() -> None:
    sayable = plans(("1f1b", "interleaved"), one_setting=True)
    outcomes = outcomes_of_reading_back(
        st.one_of(sayable, sayable, plans()).map(OURS),
        lambda plan: emit(plan, "torchrun"),
        read_back,
        refusals=lambda plan: TABLE.violations(rule_input(plan)),
        each=says_every_flag,
    )
    assert outcomes["emitted"] >= 60, outcomes
    assert outcomes["refused"] >= 60, outcomes


@pytest.mark.parametrize(
    ("model", "cluster", "devices"),
    [("llama-3.1-8b", "dgx-h100", 24), ("qwen3-30b-a3b", "dgx-b200", 16), ("deepseek-v2", "dgx-h100", 96)],
)
def test_every_plan_of_the_space_comes_back(model: str, cluster: str, devices: int) -> None:
    asked = question(model, cluster, devices)
    found = [assert_comes_back(plan) for plan in plans_of_the_space(asked, "megatron-bridge", seed=1, wanted=10)]
    assert len(found) == 10
    for emission in found:
        says_every_flag(emission)
