"""Reading the Accelerate files back gives the emitted plan, for random plans, expressible or not."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from planner.backends.accelerate import emit, project, read_back, rule_input, violations
from planner.plan import Plan
from planner.problem import Workload
from planner.strategy import Strategy
from tests.plan_factory import make_cluster, make_model, make_plan
from tests.plan_strategies import plans
from tests.round_trip import assert_needs_no_second_projection, assert_same_fields, outcomes_of_reading_back


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
        st.one_of(near_accelerate_plans(), near_accelerate_plans(), plans()),
        lambda plan: emit(plan, "torchrun"),
        read_back,
        refusals=lambda plan: violations(rule_input(project(plan)[0])),
        each=lambda emission: deepspeed_files.append("ds_config.json" in emission.files),
    )
    assert outcomes["emitted"] >= 80, outcomes
    assert outcomes["as wanted"] >= 10, outcomes
    assert outcomes["refused"] >= 20, outcomes
    assert sum(deepspeed_files) >= 10, outcomes


@given(st.one_of(near_accelerate_plans(), plans()))
def test_a_projected_plan_needs_no_projection(plan: Plan) -> None:
    assert_needs_no_second_projection(project, plan)


@given(st.one_of(near_accelerate_plans(), plans()))
def test_a_projection_leaves_no_rule_that_it_should_repair(plan: Plan) -> None:
    projected = project(plan)[0]
    left = {finding.rule for finding in violations(rule_input(projected), model_too=False)}
    repairable = {f"accelerate.P{number}" for number in range(1, 8)} | {"accelerate.D2"}
    assert not left & repairable
    before, after = plan.chosen(), projected.chosen()
    assert_same_fields(before, after, "tp cp ep pp dp world_size micro_batch_size num_microbatches")
