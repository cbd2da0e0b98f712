"""Reading the DeepSpeed files back gives the plan: random plans, legal or not, and every plan of the space."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.backends.deepspeed.read import read_back
from planner.backends.deepspeed.space import TABLE
from planner.backends.rules.rule import rule_input
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_model, make_moe_model, make_plan
from tests.plan_strategies import plans
from tests.round_trip import (
    as_spelled,
    assert_comes_back,
    outcomes_of_reading_back,
    plans_of_the_space,
    question,
)

emit = emitter("deepspeed")

OURS = partial(as_spelled, backend="deepspeed")


@st.composite
def near_plans(draw: st.DrawFn) -> Plan:
    """Plans in or next to what DeepSpeed runs: one model axis beside data parallelism, uneven stages, bf16."""
    num_layers = draw(st.integers(4, 12))
    axis = draw(st.sampled_from(["data", "tp", "cp", "ep", "pp", "v"]))
    pp = draw(st.sampled_from([2, 3, 4])) if axis == "pp" else 2 if axis == "v" else 1
    s = Strategy(
        dp_shard=draw(st.sampled_from([1, 2, 4])) * (2 if axis == "ep" else 1),
        num_microbatches=draw(st.sampled_from([4, 8])),
        micro_batch_size=draw(st.sampled_from([1, 2])),
        pp=pp,
        vpp=2 if axis == "v" else 1,
        schedule="dualpipev" if axis == "v" else "1f1b",
        tp=draw(st.sampled_from([2, 4])) if axis == "tp" else 1,
        cp=draw(st.sampled_from([2, 4])) if axis == "cp" else 1,
        cp_kind="all_to_all" if axis == "cp" else "none",
        ep=2 if axis == "ep" else 1,
        zero_stage=draw(st.integers(0, 1 if pp > 1 else 3)),
        recompute=draw(st.sampled_from(["none", "full"])),
        optimizer_offload=draw(st.booleans()),
        overlap_grad_reduce=False,
        overlap_param_gather=False,
        overlap_tp=axis == "tp" and draw(st.booleans()),
    )
    if s.zero_stage >= 2:
        s = replace(s, overlap_grad_reduce=draw(st.booleans()))
        s = replace(s, overlap_param_gather=s.zero_stage == 3 and s.overlap_grad_reduce and draw(st.booleans()))
    chunks = s.num_chunks
    cuts = sorted(draw(st.lists(st.integers(1, num_layers - 1), min_size=chunks - 1, max_size=chunks - 1)))
    layers = [end - start for start, end in zip([0, *cuts], [*cuts, num_layers], strict=True)]
    per_node = max(size for size in range(1, 9) if s.world_size % size == 0)
    return make_plan(
        s,
        make_moe_model(num_layers) if axis == "ep" else make_model(num_layers, tie_embeddings=draw(st.booleans())),
        make_cluster(s.world_size, devices_per_node=per_node),
        workload=Workload(
            global_batch_size=s.global_batch_size,
            sequence_length=4096,
            gradient_dtype=draw(st.sampled_from(["fp32", "bf16"])),
            precision=draw(st.sampled_from(["bf16", "fp16"])),
        ),
        layers_per_chunk=layers,
        recompute_layers_per_chunk=[draw(st.integers(0, count)) for count in layers],
    )


def test_reading_back_gives_the_emitted_plan() -> None:
    outcomes = outcomes_of_reading_back(
        st.one_of(near_plans(), near_plans(), plans()).map(OURS),
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
        ("llama-2-13b", "dgx-a100-40g", 48, "bf16"),
        ("mixtral-8x7b", "dgx-a100-80g", 32, "fp32"),
        ("qwen3-30b-a3b", "mi300x-8", 16, "bf16"),
        ("deepseek-v2", "dgx-h100", 96, "fp32"),
    ],
)
def test_every_plan_of_the_space_comes_back(model: str, cluster: str, devices: int, gradients: str) -> None:
    asked = question(model, cluster, devices, gradient_dtype=gradients)
    # Of 400 strategies of DeepSeek-V2 rules refuse 290 and memory 100, so one seed may find fewer than ten plans.
    drawn = (plans_of_the_space(asked, "deepspeed", seed=seed, wanted=10) for seed in (devices, devices + 1))
    found = [assert_comes_back(plan) for plan in islice(chain.from_iterable(drawn), 10)]
    assert len(found) == 10


@given(st.one_of(near_plans(), plans()))
def test_a_spelling_is_the_only_one(plan: Plan) -> None:
    spelled = OURS(plan)
    assert OURS(spelled) == spelled
