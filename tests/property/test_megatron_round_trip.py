"""Reading Megatron's arguments back gives the plan: random plans, legal or not, and every plan of the space."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.backends.asked import inside
from planner.backends.emission.layout import chunks_in_model_order, layout_of
from planner.backends.megatron.layout import layout_string, parse_layout
from planner.backends.megatron.read import read_back
from planner.backends.megatron.space import TABLE
from planner.backends.registry import software
from planner.backends.rules.rule import rule_input
from planner.plan.plan import ChunkPlan, Plan
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_strategies import plans
from tests.round_trip import (
    as_spelled,
    assert_comes_back,
    outcomes_of_reading_back,
    plans_of_the_space,
    question,
)

emit = emitter("megatron")

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


@pytest.mark.parametrize(
    ("model", "devices", "strategy", "said"),
    [
        ("qwen3-235b-a22b", 256, Strategy(tp=2, sp=True, pp=32, vpp=3, ep=4, dp_shard=4), "E|(t|)*94L"),
        ("llama-3.1-405b", 1024, Strategy(tp=8, sp=True, pp=16, vpp=8, dp_shard=8), "E|(t|)*126L"),
    ],
)
def test_chunks_without_layers_come_back(model: str, devices: int, strategy: Strategy, said: str) -> None:
    """Embedding and head each take a layer's place: 94 layers are 96 chunks, 126 layers 128."""
    asked = inside(question(model, "dgx-h100", devices, global_batch_size=32 * strategy.dp), software("megatron"))
    strategy = replace(
        strategy, schedule="interleaved", microbatch_group_size=strategy.pp, num_microbatches=32, overlap_ep=False
    )
    plan = estimate(asked, strategy)
    chunks = chunks_in_model_order(layout_of(plan))
    assert [chunk.num_layers for chunk in chunks] == [0, *(1,) * asked.model.num_layers, 0]
    assert f"--pipeline-model-parallel-layout {said}" in assert_comes_back(plan).files["megatron.args"]


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
