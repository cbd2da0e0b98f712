"""Reading the Accelerate files back gives the emitted plan, for random plans, expressible or not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st

from planner.backends.accelerate.read import read_back
from planner.backends.accelerate.space import violations
from planner.backends.rules.rule import rule_input
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.drawn_from_space import drawn_plans, question
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_model, make_plan
from tests.plan_strategies import plans
from tests.round_trip import as_spelled, assert_comes_back, outcomes_of_reading_back

emit = emitter("accelerate")


@st.composite
def near_accelerate_plans(draw: st.DrawFn) -> Plan:
    """Plans in or next to what Accelerate runs: no pipeline, no experts."""
    layers = draw(st.integers(4, 12))
    s = Strategy(
        tp=draw(st.sampled_from([1, 1, 2, 4])),
        cp=draw(st.sampled_from([1, 1, 2])),
        dp_replicate=draw(st.sampled_from([1, 1, 2])),
        dp_shard=draw(st.sampled_from([1, 2, 4])),
        micro_batch_size=draw(st.sampled_from([1, 2])),
        num_microbatches=draw(st.sampled_from([1, 4])),
        zero_stage=draw(st.integers(0, 3)),
        recompute=draw(st.sampled_from(["none", "full"])),
        optimizer_offload=draw(st.sampled_from([False, False, True])),
        overlap_grad_reduce=draw(st.booleans()),
        overlap_param_gather=draw(st.booleans()),
    )
    s = replace(s, cp_kind="ring" if s.cp > 1 else "none")
    per_node = max(size for size in range(1, 9) if s.world_size % size == 0)
    return make_plan(
        s,
        make_model(layers, num_kv_heads=4, tie_embeddings=draw(st.booleans())),
        make_cluster(s.world_size, devices_per_node=per_node),
        workload=Workload(
            global_batch_size=s.global_batch_size,
            sequence_length=4096,
            gradient_dtype=draw(st.sampled_from(["fp32", "bf16"])),
            precision=draw(st.sampled_from(["bf16", "fp16"])),
        ),
        recompute_layers_per_chunk=[draw(st.integers(0, layers))],
    )


def test_reading_back_gives_the_emitted_plan() -> None:
    deepspeed_files: list[bool] = []
    outcomes = outcomes_of_reading_back(
        st.one_of(near_accelerate_plans(), near_accelerate_plans(), plans()).map(
            lambda plan: as_spelled(plan, "accelerate")
        ),
        lambda plan: emit(plan, "torchrun"),
        read_back,
        refusals=lambda plan: violations(rule_input(plan)),
        each=lambda emission: deepspeed_files.append("ds_config.json" in emission.files),
        max_examples=600,
    )
    assert outcomes["emitted"] >= 40, outcomes
    assert outcomes["refused"] >= 20, outcomes
    assert sum(deepspeed_files) >= 5, outcomes


@pytest.mark.parametrize(
    ("model", "devices"), [("llama-3.1-8b", 1), ("llama-3.1-8b", 16), ("mixtral-8x7b", 32), ("llama-3.1-70b", 64)]
)
def test_every_plan_of_the_space_is_written_and_comes_back(model: str, devices: int) -> None:
    problem = question(model, "dgx-h200", devices)
    seen = [assert_comes_back(plan) for plan in drawn_plans(problem, "accelerate", wanted=12)]
    assert len(seen) >= 3
