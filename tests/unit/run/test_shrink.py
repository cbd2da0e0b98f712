"""The small form of a plan is small, legal, and still the plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.backends.asked import software_of
from planner.backends.folders.emit import emit_plan
from planner.backends.folders.shrink import on_one_rank, shrink
from planner.backends.folders.tiny_mesh import AXES
from planner.backends.registry import files_of, software, with_files
from planner.backends.rules.rule import rule_input
from planner.errors import BackEndRefused, DocumentInvalid
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_plan
from tests.plan_strategies import plans

RUNNERS = {each.name: each.tiny_run() for each in with_files() if each.tiny_run is not None}


def planned(
    strategy: Strategy,
    model: str = "llama-3.1-8b",
    layers: tuple[int, ...] | None = None,
    backend: str = "native",
) -> Plan:
    """A plan of a real model on a made-up cluster."""
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096)
    return make_plan(strategy, load_model(model), workload=workload, layers_per_chunk=layers, backend=backend)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.sampled_from(sorted(RUNNERS)), st.sampled_from([4, 8, 16]))
def test_the_small_form_is_legal_and_keeps_the_axes(plan: Plan, backend: str, max_ranks: int) -> None:
    plan = plan.model_copy(update={"backend": backend, "release": ""})
    space = software(backend).release.space
    ring = not RUNNERS[backend].without_context_parallelism
    wanted = space.spelled(plan.chosen(), rule_input(plan))
    if not ring:
        wanted = replace(wanted, cp=1, cp_kind="none", dp_shard=wanted.dp_shard * wanted.cp)
    try:
        shrunk = shrink(plan, max_ranks, context_parallelism=ring)
    except DocumentInvalid:
        assert 2 ** sum(getattr(wanted, axis) > 1 for axis in AXES) > max_ranks
        return
    except BackEndRefused:
        # A plan that the back-end refuses has no small form either, or its parts need more ranks than there are.
        assert plan.chosen().world_size > max_ranks or space.rules.violations(rule_input(plan))
        return
    small = shrunk.plan.chosen()
    assert small.world_size <= max_ranks
    assert all((getattr(small, axis) > 1) == (getattr(wanted, axis) > 1) for axis in (*AXES, "ep", "vpp"))
    assert (small.schedule, small.recompute, small.sp, small.cp_kind) == (
        wanted.schedule,
        wanted.recompute,
        wanted.sp,
        wanted.cp_kind,
    )
    assert space.rules.violations(rule_input(shrunk.plan)) == []
    if wanted.world_size <= max_ranks:
        assert all(getattr(small, axis) == getattr(wanted, axis) for axis in AXES)
    assert shrunk.plan.problem.model.num_layers <= 3 * small.num_chunks
    read = files_of(software_of(shrunk.plan)).read
    assert read(emit_plan(shrunk.plan, "torchrun").files)[0] == shrunk.plan.chosen()


def test_a_large_mesh_is_cut_to_divisors_and_said() -> None:
    strategy = Strategy(tp=8, sp=True, pp=4, dp_shard=16, num_microbatches=32, overlap_grad_reduce=False)
    shrunk = shrink(planned(strategy, "llama-3.1-70b"), 8)
    small = shrunk.plan.chosen()
    assert (small.tp, small.pp, small.dp_shard, small.num_microbatches) == (2, 2, 2, 4)
    said = {change.name: (change.before, change.after) for change in shrunk.changes}
    assert said["tp"] == (8, 2)
    assert said["layers"] == (80, 2)
    assert "schedule" not in said


def test_uneven_stages_stay_uneven_and_partial_recompute_partial() -> None:
    strategy = Strategy(pp=2, num_microbatches=8, recompute="full")
    workload = Workload(global_batch_size=8, sequence_length=4096)
    plan = make_plan(strategy, load_model("llama-3.1-8b"), None, workload, (15, 17), (15, 4), backend="native")
    small = shrink(plan, 8).plan
    assert [stage.layers for stage in small.stages] == [2, 3]
    assert [stage.recompute.num_layers_per_chunk for stage in small.stages] == [(2,), (1,)]


def test_every_kind_of_layer_is_there() -> None:
    for name in ("qwen3-235b-a22b", "mixtral-8x7b"):
        small = shrink(planned(Strategy(ep=4, dp_shard=4, num_microbatches=2), name), 8).plan
        model = small.problem.model
        assert {kind.moe is None for kind in model.layer_kinds} == {
            kind.moe is None for kind in load_model(name).layer_kinds
        }
        assert len(set(model.layer_kind_sequence())) == len(model.layer_kinds)
        assert set(model.layer_kind_sequence()) == set(load_model(name).layer_kind_sequence())


def test_one_stage_holds_dense_layers_and_experts() -> None:
    shrunk = shrink(planned(Strategy(dp_shard=4, num_microbatches=2), "glm-4.5-air", backend="megatron"), 8)
    model = shrunk.plan.problem.model
    assert model.num_layers == 2
    assert {kind.moe is None for kind in model.layer_kinds} == {True, False}
    assert set(model.layer_kind_sequence()) == {0, 1}
    assert {"experts", "active_experts"} <= {change.name for change in shrunk.changes}


def test_too_many_axes_are_refused_with_the_ranks_that_they_need() -> None:
    strategy = Strategy(
        tp=2, pp=2, dp_replicate=2, dp_shard=2, zero_stage=1, num_microbatches=4, overlap_grad_reduce=False
    )
    with pytest.raises(DocumentInvalid, match="need at least 16 ranks, 8 are allowed"):
        shrink(planned(strategy), 8)
    assert shrink(planned(strategy), 16).plan.chosen().world_size == 16


def test_megatron_trades_context_parallel_ranks_for_data_parallel_ones_and_keeps_experts() -> None:
    strategy = Strategy(
        tp=4, sp=True, cp=2, cp_kind="ring", ep=2, pp=2, vpp=2, schedule="interleaved", num_microbatches=12
    )
    plan = planned(replace(strategy, microbatch_group_size=4), "qwen3-30b-a3b", backend="megatron")
    shrunk = shrink(plan, 8, context_parallelism=False)
    small = shrunk.plan.chosen()
    assert (small.cp, small.cp_kind, small.tp, small.pp, small.dp_shard, small.ep) == (1, "none", 2, 2, 2, 2)
    assert (small.schedule, small.vpp, small.microbatch_group_size, small.num_microbatches) == ("interleaved", 2, 2, 4)
    said = {change.name: (change.before, change.after) for change in shrunk.changes}
    assert said["cp"] == (2, 1)
    assert said["dp_shard"] == (1, 2)
    assert shrunk.plan.problem.workload.global_batch_size == small.global_batch_size


def test_the_reference_of_one_rank_trains_the_same_samples() -> None:
    small = shrink(planned(Strategy(tp=2, sp=True, pp=2, num_microbatches=8)), 8).plan
    alone = on_one_rank(small)
    assert alone.chosen().world_size == 1
    assert alone.chosen().global_batch_size == small.chosen().global_batch_size
    assert alone.problem.model == small.problem.model
    assert [stage.layers for stage in alone.stages] == [small.problem.model.num_layers]
