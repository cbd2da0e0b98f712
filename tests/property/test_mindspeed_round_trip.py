"""Reading MindSpeed's arguments back gives the plan: random plans, legal or not, and every plan of the space."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.backends.emission.emission import Emission
from planner.backends.megatron.arguments import parse_arguments
from planner.backends.mindspeed.flag_table import known_flags
from planner.backends.mindspeed.read import read_back
from planner.backends.mindspeed.space import TABLE
from planner.backends.mindspeed.write import ARGUMENTS_FILE
from planner.backends.rules.rule import rule_input
from planner.plan.plan import Plan
from tests.emitter import emitter
from tests.mindspeed_plans import in_bf16_with_adam, on_ascend
from tests.plan_strategies import plans
from tests.round_trip import (
    as_spelled,
    assert_comes_back,
    outcomes_of_reading_back,
    plans_of_the_space,
    question,
)

emit = emitter("mindspeed")

KNOWN = set(known_flags("core_v0.12.1"))
OURS = partial(as_spelled, backend="mindspeed")


def knows_every_flag(emission: Emission) -> None:
    assert set(parse_arguments(emission.files[ARGUMENTS_FILE])) <= KNOWN


def test_reading_back_gives_the_emitted_plan() -> None:
    sayable = plans(("1f1b", "interleaved", "dualpipev"), one_setting=True)
    outcomes = outcomes_of_reading_back(
        st.one_of(sayable, sayable, plans()).map(in_bf16_with_adam).map(on_ascend).map(OURS),
        lambda plan: emit(plan, "torchrun"),
        read_back,
        refusals=lambda plan: TABLE.violations(rule_input(plan)),
        each=knows_every_flag,
    )
    assert outcomes["emitted"] >= 30, outcomes
    assert outcomes["refused"] >= 60, outcomes


@pytest.mark.parametrize(
    ("model", "cluster", "devices", "gradients"),
    [
        ("llama-3.1-8b", "ascend-910b-8", 8, "fp32"),
        ("llama-2-13b", "ascend-910c", 32, "bf16"),
        ("mixtral-8x7b", "ascend-910b-8", 48, "fp32"),
        ("deepseek-v2", "ascend-910b-8", 192, "bf16"),
    ],
)
def test_every_plan_of_the_space_comes_back(model: str, cluster: str, devices: int, gradients: str) -> None:
    asked = question(model, cluster, devices, gradient_dtype=gradients)
    found = [assert_comes_back(plan) for plan in plans_of_the_space(asked, "mindspeed", seed=devices, wanted=10)]
    assert len(found) == 10
    for emission in found:
        knows_every_flag(emission)


@given(plans())
def test_a_spelling_is_the_only_one(plan: Plan) -> None:
    spelled = OURS(on_ascend(plan))
    assert OURS(spelled) == spelled
