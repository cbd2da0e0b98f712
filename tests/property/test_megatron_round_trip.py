"""Reading Megatron's arguments back gives the plan: random plans, legal or not, and every plan of the space."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.backends.megatron.layout import layout_string, parse_layout
from planner.backends.megatron.read import read_back
from planner.backends.megatron.space import TABLE
from planner.backends.megatron.write import emit
from planner.backends.rules.rule import rule_input
from planner.plan import ChunkPlan, Plan
from tests.plan_strategies import plans
from tests.round_trip import (
    as_spelled,
    assert_comes_back,
    outcomes_of_reading_back,
    plans_of_the_space,
    question,
)

OURS = partial(as_spelled, backend="megatron")


def test_reading_back_gives_the_emitted_plan() -> None:
    sayable = plans(("1f1b", "interleaved"), one_setting=True)
    outcomes = outcomes_of_reading_back(
        st.one_of(sayable, sayable, plans()).map(OURS),
        lambda plan: emit(plan, "torchrun"),
        read_back,
        refusals=lambda plan: TABLE.violations(rule_input(plan)),
    )
    assert outcomes["emitted"] >= 60, outcomes
    assert outcomes["refused"] >= 60, outcomes


@pytest.mark.parametrize(
    ("model", "cluster", "devices", "gradients"),
    [
        ("llama-3.1-8b", "dgx-h100", 8, "fp32"),
        ("llama-3.1-70b", "dgx-h100", 48, "bf16"),
        ("gpt2-xl", "dgx-a100-40g", 24, "fp32"),
        ("mixtral-8x7b", "dgx-a100-80g", 32, "fp32"),
        ("qwen3-30b-a3b", "dgx-h100", 16, "bf16"),
        ("deepseek-v2", "dgx-h100", 96, "fp32"),
    ],
)
def test_every_plan_of_the_space_comes_back(model: str, cluster: str, devices: int, gradients: str) -> None:
    asked = question(model, cluster, devices, gradient_dtype=gradients)
    found = [assert_comes_back(plan) for plan in plans_of_the_space(asked, "megatron", seed=devices, wanted=12)]
    assert len(found) == 12


@given(plans())
def test_a_spelling_is_the_only_one(plan: Plan) -> None:
    spelled = OURS(plan)
    assert OURS(spelled) == spelled


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
