"""A host that is late costs what its launches take; a host that is not late costs nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.backends.megatron.physics import MEGATRON_2021
from planner.backends.megatron_deepspeed.physics import MEGATRON_DEEPSPEED
from planner.model.builtin import builtin_model
from planner.model.model_yaml import model_from_description
from planner.model.operator import Operator
from planner.model.operators import head_operators, layer_operators, mtp_operators
from planner.model.spec import ModelSpec
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.launches import (
    EAGER_SOFTMAX_CALLS,
    EAGER_SOFTMAX_KERNELS,
    FUSED_KERNELS,
    UNFUSED_ATTENTION_KERNELS,
    host_s,
)
from planner.predict.cost.layer import layer_kind, saved_and_extra
from planner.predict.cost.row_cost import CostModel
from planner.predict.layer_keys import LayerKeys
from planner.predict.physics.host import BLOCKED_SHARE
from planner.predict.physics.physics import TUNED, Physics
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster
from tests.reliefs import RELIEFS

LAUNCH_S, CALL_S = 10e-6, 100e-6
EAGER = Physics("eager", launch_s=LAUNCH_S, call_s=CALL_S, collective_launches=2.0, parameter_hooks=3.0)
GPT_KINDS = ("norm", "matmul", "attention", "matmul", "residual", "norm", "matmul", "activation", "matmul", "residual")


def gpt(vocabulary: int = 51200) -> ModelSpec:
    return model_from_description(
        {
            "num_layers": 2, "hidden_size": 1024, "num_heads": 16, "num_kv_heads": 16, "vocab_size": vocabulary,
            "max_sequence_length": 1024, "intermediate_size": 4096, "mlp": "gelu", "norm": "layer", "bias": True,
            "position": "learned", "tie_embeddings": True,
        },
        "gpt",
        "test",
    )  # fmt: skip


def gpt_layer() -> tuple[Operator, ...]:
    return layer_operators(gpt(), 0)


def keys_of(tp: int = 1, micro: int = 1, sp: int = 0) -> LayerKeys:
    def column(value: float) -> np.ndarray:
        return np.array([float(value)])

    return LayerKeys(
        tp=column(tp), sp=column(sp), cp=column(1), ring=column(0), ep=column(1), etp=column(1),
        micro_batch_size=column(micro), overlap_tp=column(0), overlap_ep=column(0), sequence_length=1024,
    )  # fmt: skip


def a100(traits: Physics = TUNED) -> Hardware:
    return replace(hardware_of(load_cluster("dgx-a100-80g", 8), "fp16"), physics=traits)


def test_launches_of_a_gpt_layer_by_hand() -> None:
    assert tuple(operator.op_class for operator in gpt_layer()) == GPT_KINDS
    forward, backward = host_s(gpt_layer(), keys_of(), EAGER)
    kernels = [FUSED_KERNELS[name] for name in GPT_KINDS]
    weights = 6
    assert forward[0] == pytest.approx(LAUNCH_S * sum(each[0] for each in kernels) + CALL_S * 10)
    assert backward[0] == pytest.approx(LAUNCH_S * (sum(each[1] for each in kernels) + 3 * weights))


@pytest.mark.parametrize(("sp", "collectives"), [(0, 2), (1, 4)])
def test_each_tensor_parallel_collective_is_launched(sp: int, collectives: int) -> None:
    alone, split = (host_s(gpt_layer(), keys_of(tp, sp=sp * (tp > 1)), EAGER) for tp in (1, 4))
    assert split[0] - alone[0] == pytest.approx(collectives * (2 * LAUNCH_S + CALL_S))
    assert split[1] - alone[1] == pytest.approx(collectives * 2 * LAUNCH_S)


def test_score_tables_that_do_not_come_in_fours_take_the_eager_softmax() -> None:
    """16 heads over tp 8: two tables a sample, so two samples fill the fused kernel's group and one does not."""
    unfused = replace(EAGER, attention="unfused")
    one, two = (host_s(gpt_layer(), keys_of(8, micro), unfused) for micro in (1, 2))
    assert one[0] - two[0] == pytest.approx(EAGER_SOFTMAX_KERNELS[0] * LAUNCH_S + EAGER_SOFTMAX_CALLS * CALL_S)
    assert one[1] - two[1] == pytest.approx(EAGER_SOFTMAX_KERNELS[1] * LAUNCH_S)
    fused = host_s(gpt_layer(), keys_of(8, 2), EAGER)
    assert two[0] - fused[0] == pytest.approx((UNFUSED_ATTENTION_KERNELS[0] - FUSED_KERNELS["attention"][0]) * LAUNCH_S)


def test_a_layer_takes_the_longer_of_device_and_host() -> None:
    """One sample of hidden 1024 is bound by the host, 64 samples by the device; forward and backward by themselves."""
    small, large = (layer_kind(gpt_layer(), keys_of(micro=micro), a100(EAGER)) for micro in (1, 64))
    assert small.forward_s == small.host_forward_s
    assert small.stall_s > 0.0
    assert large.forward_s + large.backward_s == pytest.approx(large.sums.total_s)
    assert large.stall_s == pytest.approx(0.0, abs=1e-12)


def test_launches_that_wait_for_their_kernels_leave_a_part_of_the_host_in_the_open() -> None:
    keys = keys_of(micro=64)
    queued, blocked = (a100(replace(EAGER, blocking_launches=on)) for on in (False, True))
    plain, slow = (layer_kind(gpt_layer(), keys, hardware) for hardware in (queued, blocked))
    assert slow.forward_s - plain.forward_s == pytest.approx(BLOCKED_SHARE * slow.host_forward_s)
    assert slow.stall_s == pytest.approx(BLOCKED_SHARE * (slow.host_forward_s + slow.host_backward_s))
    _, replay_s = saved_and_extra(plain, keys, queued, Relief("full"), 1024)
    _, slow_replay_s = saved_and_extra(slow, keys, blocked, Relief("full"), 1024)
    assert slow_replay_s - replay_s == pytest.approx(BLOCKED_SHARE * slow.host_forward_s)


def test_a_replayed_layer_is_launched_again_by_python() -> None:
    keys, hardware = keys_of(), a100(EAGER)
    kind = layer_kind(gpt_layer(), keys, hardware)
    _, extra_s = saved_and_extra(kind, keys, hardware, Relief("full"), 1024)
    assert kind.backward_s + extra_s == pytest.approx(kind.host_backward_s + kind.host_forward_s)


def row_s(traits: Physics, strategy: Strategy, model: ModelSpec | None = None) -> tuple[float, float, float]:
    """Seconds of embedding, head and hop."""
    spec = model or gpt()
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=1024, precision="fp16")
    cost = CostModel(spec, workload, a100(traits), RELIEFS).rows(StrategyRows.of([strategy], RELIEFS))
    return float(cost.embedding_s[0]), float(cost.head_s[0]), float(cost.hop_s[0])


def test_the_ends_wait_for_their_launches() -> None:
    strategy = Strategy(tp=8, num_microbatches=2)
    late = replace(EAGER, launch_s=1e-3)
    forward, backward = host_s(head_operators(gpt()), keys_of(8), late)
    assert row_s(late, strategy)[1] == pytest.approx(float(forward[0] + backward[0]))
    assert row_s(TUNED, strategy)[1] < 2e-3


def test_ranks_wait_for_the_slowest_of_them() -> None:
    skewed = replace(TUNED, collective_skew_s=1e-3)
    plain, late = (layer_kind(gpt_layer(), keys_of(tp=8, micro=8), a100(traits)) for traits in (TUNED, skewed))
    by_hand = 4 * 1e-3 * np.sqrt(2 * np.log(8))
    assert late.sums.total_s - plain.sums.total_s == pytest.approx(by_hand)
    alone = [layer_kind(gpt_layer(), keys_of(), a100(traits)).sums.total_s for traits in (TUNED, skewed)]
    assert alone[0] == alone[1]


@pytest.mark.parametrize(("vocabulary", "tp", "slower"), [(50257, 1, True), (50304, 1, False), (50257, 2, False)])
def test_an_odd_vocabulary_is_slow_where_nobody_pads_it(vocabulary: int, tp: int, slower: bool) -> None:
    strategy = Strategy(tp=tp, micro_batch_size=8)
    padded, given = (
        row_s(replace(TUNED, pads_vocabulary=pads), strategy, gpt(vocabulary))[1] for pads in (True, False)
    )
    assert (given > 1.5 * padded) is slower
    assert slower or given == padded


def test_scattered_hops_cross_in_parts_and_are_gathered() -> None:
    strategy = Strategy(tp=4, pp=2, micro_batch_size=8, num_microbatches=2)
    whole, parts = (row_s(replace(TUNED, scattered_hops=flag), strategy)[2] for flag in (False, True))
    size, one = np.array([8 * 1024 * 1024 * 2.0]), np.ones(1)
    hardware = a100()
    sent_s = hardware.collective_s("send_recv", size / 4, 2 * one, 4 * one)
    gathered_s = hardware.collective_s("all_gather", size, 4 * one, one)
    assert parts == pytest.approx(float(sent_s[0] + gathered_s[0]))
    assert whole == pytest.approx(float(hardware.collective_s("send_recv", size, 2 * one, 4 * one)[0]))
    under_sp = replace(strategy, sp=True)
    assert row_s(replace(TUNED, scattered_hops=True), under_sp)[2] == row_s(TUNED, under_sp)[2]


def test_separate_reductions_read_again_in_the_backward_pass() -> None:
    plain, separate = (
        layer_kind(gpt_layer(), keys_of(micro=64), a100(traits))
        for traits in (TUNED, replace(TUNED, separate_reductions=True))
    )
    names = {"norm": 1.0, "residual": 0.7, "activation": 0.5}
    more = sum(names.get(op.op_class, 0.0) * plain.forward_times_s[op.name] for op in plain.operators)
    assert separate.sums.backward_s - plain.sums.backward_s == pytest.approx(more)
    assert separate.sums.forward_s == plain.sums.forward_s


def test_loss_in_fp32_moves_22_bytes_a_logit_forward_and_10_backward() -> None:
    operators = head_operators(builtin_model("llama-3.1-8b"))
    one, wide = (layer_kind(operators, keys_of(micro=4), a100(t)) for t in (TUNED, replace(TUNED, wide_loss=True)))
    bandwidth = a100().rates.memory_bytes_per_s
    logits = 4 * 1024 * 128_256
    assert wide.sums.forward_s - one.sums.forward_s == pytest.approx(18.0 * logits / bandwidth, rel=0.01)
    assert wide.sums.backward_s - one.sums.backward_s == pytest.approx(4.0 * logits / bandwidth, rel=0.02)


def test_log_probabilities_move_54_and_58_bytes_a_logit_and_multiply_again() -> None:
    operators = head_operators(builtin_model("llama-3.1-8b"))
    slow = replace(TUNED, log_probability_loss=True)
    one, chunked = (layer_kind(operators, keys_of(micro=4), a100(traits)) for traits in (TUNED, slow))
    bandwidth, logits = a100().rates.memory_bytes_per_s, 4 * 1024 * 128_256
    head = next(op.name for op in operators if op.shard == "vocabulary" and op.in_features)
    again = one.forward_times_s[head]
    assert chunked.sums.forward_s - one.sums.forward_s == pytest.approx(50.0 * logits / bandwidth, rel=0.01)
    more = 52.0 * logits / bandwidth + again
    assert chunked.sums.backward_s - one.sums.backward_s == pytest.approx(more, rel=0.01)


def test_known_frameworks_are_never_faster_than_a_tuned_one() -> None:
    keys = keys_of(tp=4, micro=2)
    operators = layer_operators(builtin_model("llama-3.1-8b"), 0)
    tuned_s = layer_kind(operators, keys, a100()).sums.total_s
    for traits in (MEGATRON_2021, MEGATRON_DEEPSPEED):
        kind = layer_kind(operators, keys, a100(traits))
        assert kind.forward_s + kind.backward_s >= tuned_s


def test_offload_moves_what_the_framework_keeps() -> None:
    """Unfused attention keeps 2 bytes a score: 8 x 16 tables of 1,024 squared, both ways, far beyond what hides."""
    keys, slow = keys_of(micro=8), 1e6
    seconds = []
    for traits in (TUNED, replace(TUNED, attention="unfused")):
        hardware = replace(a100(traits), host_link_bytes_per_s=slow)
        kind = layer_kind(gpt_layer(), keys, hardware)
        seconds.append(saved_and_extra(kind, keys, hardware, Relief(offload=True), 1024)[1])
    assert float((seconds[1] - seconds[0])[0]) == pytest.approx(2 * 2 * 8 * 16 * 1024**2 / slow, rel=0.01)


def test_modules_of_multi_token_prediction_are_launched_too() -> None:
    """One module of multi-token prediction: its own operators, a layer, and the head once more."""
    late, keys = replace(EAGER, launch_s=1e-3), keys_of(8)
    model = builtin_model("deepseek-v3")
    assert model.mtp is not None
    assert model.mtp.num_layers == 1
    launched = (*head_operators(model), *head_operators(model), *mtp_operators(model))
    launched += layer_operators(model, model.mtp.kind)
    forward, backward = host_s(launched, keys, late)
    assert row_s(late, Strategy(tp=8, num_microbatches=2), model)[1] == pytest.approx(float(forward[0] + backward[0]))


def _mixture_kinds(model: str = "qwen3-235b-a22b") -> tuple[Operator, ...]:
    return layer_operators(builtin_model(model), 0)


def _of_mixture(traits: Physics, *, ep: int, casts: bool = False) -> tuple[float, float]:
    keys = replace(keys_of(), ep=np.array([float(ep)]))
    forward, backward = host_s([op for op in _mixture_kinds() if op.module == "moe"], keys, traits, casts=casts)
    return float(forward[0]), float(backward[0])


def test_launches_around_experts_by_hand() -> None:
    """Forward: router 12, all-to-all dispatch 23 and combine 6, two grouped products and an activation; backward 12 + 8
    + 5, two for each product, one.  Eight times a usual launch; 15 further local experts, each way and product."""
    traits = Physics(launch_s=LAUNCH_S, expert_launches=8.0, each_expert_s=1e-6)
    forward_s, backward_s = _of_mixture(traits, ep=8)
    assert forward_s == pytest.approx(8 * LAUNCH_S * (12 + 23 + 6 + 3) + 2 * 15e-6)
    assert backward_s == pytest.approx(8 * LAUNCH_S * (12 + 8 + 5 + 5) + 2 * 2 * 15e-6)


def test_deep_ep_needs_fewer_launches_than_an_all_to_all_by_hand() -> None:
    each, once = (Physics(launch_s=LAUNCH_S, dispatch=dispatch) for dispatch in ("expert", "node"))
    fewer = [many - few for many, few in zip(_of_mixture(each, ep=8), _of_mixture(once, ep=8), strict=True)]
    assert fewer == pytest.approx([LAUNCH_S * (23 + 6 - 12 - 3), LAUNCH_S * (8 + 5 - 5 - 4)])


def test_matmuls_in_eight_bit_cast_an_input_and_a_gradient() -> None:
    traits = Physics(launch_s=LAUNCH_S)
    wide, narrow = _of_mixture(traits, ep=8), _of_mixture(traits, ep=8, casts=True)
    assert [more - less for more, less in zip(narrow, wide, strict=True)] == pytest.approx([2 * LAUNCH_S, 2 * LAUNCH_S])


def test_a_graph_launches_nothing_of_its_operators_in_a_layer_but_still_at_the_ends() -> None:
    graphed = Physics(launch_s=LAUNCH_S, call_s=CALL_S, graphed=frozenset({"matmul", "attention", "norm", "residual"}))
    eager = replace(graphed, graphed=frozenset())
    layer, head = gpt_layer(), head_operators(gpt())
    left = [operator for operator in layer if operator.op_class == "activation"]
    assert host_s(layer, keys_of(), graphed) == host_s(left, keys_of(), eager)
    ends = [operator for operator in head if operator.module == "head"]
    assert host_s(ends, keys_of(), graphed) == host_s(ends, keys_of(), eager)
