"""Reading the DeepSpeed files back gives the emitted plan, for random plans, expressible or not."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from planner.backends.deepspeed import emit, project, read_back, rule_input, violations
from planner.plan import Plan
from planner.problem import Workload
from planner.strategy import Strategy
from tests.plan_factory import make_cluster, make_model, make_moe_model, make_plan
from tests.plan_strategies import plans
from tests.round_trip import (
    assert_ends_in_place,
    assert_needs_no_second_projection,
    assert_same_fields,
    outcomes_of_reading_back,
)

# What no projection can repair: the model, the workload, and axes that DeepSpeed cannot combine or divide.
WITHOUT_NEIGHBOUR = {f"deepspeed.P{number}" for number in (3, 4, 5)}
WITHOUT_NEIGHBOUR |= {f"deepspeed.E{number}" for number in range(4, 16)}
WITHOUT_NEIGHBOUR |= {"deepspeed.E17", "deepspeed.T1", "deepspeed.T3"}


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
        st.one_of(near_plans(), near_plans(), plans()),
        lambda plan: emit(plan, "torchrun"),
        read_back,
        refusals=lambda plan: violations(rule_input(project(plan)[0])),
    )
    assert outcomes["emitted"] >= 120, outcomes
    assert outcomes["as wanted"] >= 60, outcomes
    assert outcomes["refused"] >= 20, outcomes


@given(st.one_of(near_plans(), plans()))
def test_a_projected_plan_needs_no_projection(plan: Plan) -> None:
    assert_needs_no_second_projection(project, plan)


@given(plans())
def test_a_projection_repairs_every_rule_that_has_a_neighbour(plan: Plan) -> None:
    left = {finding.rule for finding in violations(rule_input(project(plan)[0]), model_too=False)}
    assert left <= WITHOUT_NEIGHBOUR


@given(plans())
def test_a_projection_keeps_layers_and_ranks_and_saves_no_more_activations(plan: Plan) -> None:
    before, after = plan.chosen(), project(plan)[0]
    strategy = after.chosen()
    assert_same_fields(before, strategy, "tp cp ep pp dp world_size micro_batch_size num_microbatches")
    for old, new in zip(plan.stages, after.stages, strict=True):
        assert sum(chunk.num_layers for chunk in new.chunks) == sum(chunk.num_layers for chunk in old.chunks)
        recomputed = sum(new.recompute.num_layers_per_chunk)
        assert recomputed >= sum(old.recompute.num_layers_per_chunk)
        assert recomputed >= min(old.offload.activation_layers, old.layers)
    assert_ends_in_place(after)
