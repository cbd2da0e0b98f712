from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.backends.asked import physics_of
from planner.model.operators import layer_operators
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from planner.plan.communication_bill import Traffic, busiest_stages, communication_bill, data_size
from planner.plan.plan import Plan
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.layer import layer_kind
from planner.predict.cost.payload import exchanges
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys
from planner.question.problem import Workload
from planner.question.routing import EVEN
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_cluster, make_model, make_moe_model, make_plan

TOKENS = 4096
HIDDEN = 1024
LAYERS = 8
ROWS = TOKENS * HIDDEN * 2.0
"""Hidden states of one micro-batch of one sample, 16 bit."""


def _bill(plan: Plan) -> tuple[Traffic, ...]:
    return communication_bill(plan, physics_of(plan))


def lines(plan: Plan, axis: str, stage: int = 0) -> dict[str, Traffic]:
    return {line.operation: line for line in _bill(plan) if line.axis == axis and line.stage == stage}


def test_megatron_layers_sum_four_times() -> None:
    plan = make_plan(Strategy(tp=4, dp_shard=2, micro_batch_size=2, num_microbatches=3))
    found = lines(plan, "tp")
    assert set(found) == {"all_reduce"}
    # Two a layer and direction, and one after the embedding and one before the head.
    calls = 3 * (4 * LAYERS + 2)
    assert found["all_reduce"].calls_per_step == calls
    assert found["all_reduce"].bytes_per_step == calls * 2 * ROWS
    assert found["all_reduce"].group_size == 4


def test_sequence_parallelism_halves_the_sums_and_gathers_once_more() -> None:
    found = lines(make_plan(Strategy(tp=4, sp=True, num_microbatches=3)), "tp")
    assert set(found) == {"all_gather", "reduce_scatter"}
    assert found["reduce_scatter"].calls_per_step == 3 * (4 * LAYERS + 2)
    assert found["all_gather"].calls_per_step == 3 * (6 * LAYERS + 2)
    assert all(line.bytes_per_step == line.calls_per_step * ROWS for line in found.values())


def test_eight_bit_matmuls_gather_half_the_bytes() -> None:
    workload = Workload(global_batch_size=1, sequence_length=TOKENS, precision="fp8")
    found = lines(make_plan(Strategy(tp=4, sp=True), workload=workload), "tp")
    assert found["all_gather"].bytes_per_step == (6 * LAYERS * 0.5 + 2) * ROWS
    assert found["reduce_scatter"].bytes_per_step == (4 * LAYERS + 2) * ROWS


@pytest.mark.parametrize(
    ("recompute", "modules", "per_layer"),
    [("none", (), 4), ("full", (), 6), ("selective", ("mlp",), 5), ("selective", ("norm",), 4)],
)
def test_a_replay_sums_again_what_its_operators_sum(recompute: Any, modules: Any, per_layer: int) -> None:
    plan = make_plan(Strategy(tp=2, recompute=recompute, recompute_modules=modules))
    assert lines(plan, "tp")["all_reduce"].calls_per_step == per_layer * LAYERS + 2


def test_only_relieved_layers_are_replayed() -> None:
    plan = make_plan(Strategy(tp=2, recompute="full"), recompute_layers_per_chunk=(3,))
    assert lines(plan, "tp")["all_reduce"].calls_per_step == 4 * LAYERS + 2 * 3 + 2


def test_the_ring_gathers_keys_and_values_three_times() -> None:
    found = lines(make_plan(Strategy(cp=4, cp_kind="ring", num_microbatches=2)), "cp")
    # 8 key/value heads of 64, keys and values, the whole sequence.
    assert found["all_gather"].bytes_per_step == 2 * LAYERS * 3 * TOKENS * 8 * 64 * 2 * 2.0
    assert set(found) == {"all_gather"}


def test_all_to_all_context_parallelism_trades_queries_outputs_keys_and_values() -> None:
    found = lines(make_plan(Strategy(cp=4, cp_kind="all_to_all")), "cp")
    per_pass = TOKENS / 4 * (2 * 16 * 64 + 2 * 8 * 64) * 2.0
    assert found["all_to_all"].bytes_per_step == LAYERS * 2 * per_pass


def test_experts_dispatch_and_combine_each_way() -> None:
    plan = make_plan(Strategy(ep=4, dp_shard=4, num_microbatches=2), make_moe_model())
    found = lines(plan, "ep")
    assert found["all_to_all"].calls_per_step == 2 * LAYERS * 4
    assert found["all_to_all"].bytes_per_step == 2 * LAYERS * 4 * 2 * ROWS
    assert found["all_to_all"].group_size == 4


def test_the_experts_own_grid_reduces_their_gradients() -> None:
    plan = make_plan(Strategy(ep=4, dp_shard=8, zero_stage=1), make_moe_model())
    experts = 3 * HIDDEN * 512 * 16 * LAYERS / 4
    assert lines(plan, "edp_shard")["reduce_scatter"].bytes_per_step == experts * 4
    assert lines(plan, "edp_shard")["reduce_scatter"].group_size == 2
    assert lines(plan, "edp_shard")["all_gather"].bytes_per_step == experts * 2


def parameters(model: ModelSpec) -> float:
    return float(total_parameters(model))


@pytest.mark.parametrize(
    ("zero", "expected"),
    [
        (0, {("dp_replicate", "all_reduce", 8): 4.0}),
        (1, {("dp_shard", "reduce_scatter", 8): 4.0, ("dp_shard", "all_gather", 8): 2.0}),
        (2, {("dp_shard", "reduce_scatter", 8): 4.0 * 3, ("dp_shard", "all_gather", 8): 2.0}),
        (3, {("dp_shard", "reduce_scatter", 8): 4.0 * 3, ("dp_shard", "all_gather", 8): 2.0 * 2 * 3}),
    ],
)
def test_zero_stages_in_bytes_a_parameter(zero: int, expected: dict[tuple[str, str, int], float]) -> None:
    plan = make_plan(Strategy(dp_shard=8, num_microbatches=3, zero_stage=zero))
    count = parameters(plan.problem.model)
    found = {(each.axis, each.operation, each.group_size): each.bytes_per_step for each in _bill(plan)}
    assert found == {key: pytest.approx(factor * count) for key, factor in expected.items()}


def test_hsdp_sums_shards_over_replicas() -> None:
    plan = make_plan(Strategy(dp_replicate=2, dp_shard=4, zero_stage=1))
    across = lines(plan, "dp_replicate")["all_reduce"]
    assert across.group_size == 2
    assert across.bytes_per_step == pytest.approx(parameters(plan.problem.model) * 4 / 4)


def test_stages_send_forward_and_back_but_not_around() -> None:
    plan = make_plan(Strategy(pp=4, num_microbatches=6))
    sent = {line.stage: line for line in _bill(plan) if line.axis == "pp"}
    assert {stage: line.calls_per_step for stage, line in sent.items()} == {0: 6, 1: 12, 2: 12, 3: 6}
    assert all(line.bytes_per_step == line.calls_per_step * ROWS for line in sent.values())


def test_a_v_placement_keeps_its_turning_point_on_the_stage() -> None:
    plan = make_plan(Strategy(pp=4, vpp=2, schedule="zbv", num_microbatches=8))
    calls = {line.stage: line.calls_per_step for line in _bill(plan) if line.axis == "pp"}
    assert calls == {0: 16, 1: 32, 2: 32, 3: 16}


def test_interleaved_chunks_also_go_from_the_last_stage_to_the_first() -> None:
    strategy = Strategy(pp=2, vpp=2, schedule="interleaved", microbatch_group_size=2, num_microbatches=4)
    calls = {line.stage: line.calls_per_step for line in _bill(make_plan(strategy)) if line.axis == "pp"}
    # Three borders, each crossed once in each direction by each micro-batch.
    assert sum(calls.values()) == 4 * 3 * 2


def test_a_tied_table_on_two_stages_is_summed_between_them() -> None:
    plan = make_plan(Strategy(pp=4, num_microbatches=4), make_model(tie_embeddings=True))
    tables = {line.stage: line for line in _bill(plan) if line.operation == "all_reduce"}
    assert set(tables) == {0, 3}
    assert all(line.bytes_per_step == 32000 * HIDDEN * 4 and line.group_size == 2 for line in tables.values())


def test_older_megatron_sends_hops_in_parts_and_gathers_them() -> None:
    plan = make_plan(Strategy(tp=4, pp=2, num_microbatches=4))
    scattered = plan.model_copy(update={"backend": "megatron", "release": "2.5"})
    assert lines(scattered, "pp")["send_recv"].bytes_per_step == lines(plan, "pp")["send_recv"].bytes_per_step / 4
    assert lines(scattered, "tp")["all_gather"].bytes_per_step == 4 * ROWS


def test_one_device_sends_nothing() -> None:
    assert _bill(make_plan()) == ()


def test_the_busiest_stage_of_each_line() -> None:
    bill = _bill(make_plan(Strategy(pp=4, num_microbatches=6)))
    assert [(line.axis, line.stage) for line in busiest_stages(bill)] == [("pp", 1)]


def test_sizes_for_people() -> None:
    assert [data_size(size) for size in (17, 1536, 3 * 2**20, 5 * 2**30)] == [
        "17 B",
        "1.50 KiB",
        "3.00 MiB",
        "5.00 GiB",
    ]


@pytest.mark.parametrize("sp", [0.0, 1.0])
@pytest.mark.parametrize("axis", ["tp", "cp", "ep"])
def test_the_bill_of_a_layer_at_the_price_of_a_collective_is_its_cost(axis: str, sp: float) -> None:
    """What the layer's cost counts for an axis is its bill, priced: the two cannot drift apart."""
    hardware = hardware_of(make_cluster(16), "bf16")
    switches = dict.fromkeys(KEY_COLUMNS, 0.0) | {"tp": 2.0, "sp": sp, "cp": 2.0, "ep": 4.0, "etp": 1.0}
    columns = {name: np.array([value]) for name, value in (switches | {"micro_batch_size": 1.0}).items()}
    keys = LayerKeys(**columns, sequence_length=TOKENS, routing=EVEN)
    operators = layer_operators(make_moe_model(shared=512), 0)
    kind = layer_kind(operators, keys, hardware)
    priced = 0.0
    for operator in operators:
        for each in exchanges(operator, keys, narrow=False):
            if each.axis == axis and not (axis == "tp" and each.operation == "all_gather"):
                stride = {"tp": 1.0, "cp": 2.0, "ep": 1.0}[axis]
                seconds = hardware.collective_s(each.operation, each.size_bytes, each.group_size, np.array([stride]))
                priced += float(((each.forward + each.backward) * seconds)[0])
    counted = float(getattr(kind.sums, f"{axis}_s")[0])
    if axis == "tp" and sp:
        # The gathers beside the scatters; the third one, beside the input gradient, may hide.
        assert 2 * priced <= counted <= 2.5 * priced
    else:
        assert counted == pytest.approx(priced)


def test_what_hides_does_not_change_what_is_sent() -> None:
    plan = make_plan(Strategy(tp=2, dp_shard=2))
    hidden = replace(plan.chosen(), overlap_tp=True, overlap_grad_reduce=False, overlap_param_gather=False)
    assert _bill(make_plan(hidden)) == _bill(plan)
