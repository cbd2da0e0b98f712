"""The cost of small collectives of gradients and weights, and of separate accumulation of gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.model.operators import layer_operators
from planner.model.parameters import total_parameters, weight_tensors
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.layer import layer_kind
from planner.predict.cost.row_cost import CostModel
from planner.predict.layer_keys import LayerKeys
from planner.predict.physics.physics import TUNED, Physics
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.reliefs import RELIEFS

LLAMA = builtin_model("llama-3.1-8b")
PARAMETERS = 1e9
CALLS = Physics("calls", launch_s=10e-6, reduction_launches=10.0)
BUCKETS = replace(CALLS, reduction_bucket_bytes=25e6)
TENSORS = replace(CALLS, gather_by_tensor=True)


def h100(traits: Physics) -> Hardware:
    return replace(hardware_of(load_cluster("dgx-h100", 64), "bf16"), physics=traits)


def tail_s(traits: Physics, strategy: Strategy) -> float:
    """Once-a-step seconds of PARAMETERS dense parameters, nothing hidden."""
    strategy = replace(strategy, overlap_grad_reduce=False, overlap_param_gather=False)
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=2048)
    costs = CostModel(LLAMA, workload, h100(traits), RELIEFS)
    cost = costs.rows(StrategyRows.of([strategy], RELIEFS))
    return float(costs.tail_parts_s(cost, np.array([PARAMETERS]), np.zeros(1))[0][0])


def test_weights_are_counted() -> None:
    """Nine a layer would be q, k, v apart; here: two norms, qkv, output, up and gate, down; ends: table, norm, head."""
    assert weight_tensors(LLAMA) == 32 * 6 + 3


@pytest.mark.parametrize(("zero", "rings"), [(0, 2), (1, 1)])
def test_each_bucket_adds_its_launch_and_its_passage(zero: int, rings: int) -> None:
    """Eight ranks of tp 8 on eight nodes: seven passages a ring, two rings an all_reduce."""
    strategy = Strategy(tp=8, sp=True, dp_shard=8, zero_stage=zero)
    hardware = h100(BUCKETS)
    passage_s = 7 * hardware.levels[-1].latency_s
    weight_bytes = 2 * total_parameters(LLAMA) / 8 / weight_tensors(LLAMA)
    buckets = 2 * PARAMETERS / (25e6 + weight_bytes)
    added_s = tail_s(BUCKETS, strategy) - tail_s(TUNED, strategy)
    assert added_s == pytest.approx(buckets * (100e-6 + rings * passage_s), rel=1e-3)


def test_each_gathered_weight_adds_its_launch_and_its_passage() -> None:
    """Sixteen ranks a node apart in pairs of four: (4 - 1) inside, (8 - 1) between nodes."""
    strategy = Strategy(tp=2, sp=True, dp_shard=32, zero_stage=1)
    inside, outside = h100(TENSORS).levels[0], h100(TENSORS).levels[-1]
    passage_s = 3 * inside.latency_s + 7 * outside.latency_s
    weights = PARAMETERS / (total_parameters(LLAMA) / 2) * weight_tensors(LLAMA)
    added_s = tail_s(TENSORS, strategy) - tail_s(TUNED, strategy)
    assert added_s == pytest.approx(weights * (100e-6 + passage_s), rel=1e-3)
    unsharded = replace(strategy, zero_stage=0)
    assert tail_s(TENSORS, unsharded) == pytest.approx(tail_s(TUNED, unsharded))


def test_ranks_that_meet_do_so_before_an_all_reduce() -> None:
    meeting = replace(BUCKETS, meeting_s=1e-3)
    weight_bytes = 2 * total_parameters(LLAMA) / 8 / weight_tensors(LLAMA)
    buckets = 2 * PARAMETERS / (25e6 + weight_bytes)
    for zero, met_s in ((0, buckets * 8e-3), (1, 0.0)):
        strategy = Strategy(tp=8, sp=True, dp_shard=8, zero_stage=zero)
        assert tail_s(meeting, strategy) - tail_s(BUCKETS, strategy) == pytest.approx(met_s, rel=1e-3, abs=1e-9)


def test_an_accumulator_of_its_own_moves_its_bytes_every_micro_batch() -> None:
    one = np.ones(1)
    keys = LayerKeys(
        tp=2 * one, sp=one, cp=one, ring=0 * one, ep=one, etp=one, micro_batch_size=one, overlap_tp=0 * one,
        overlap_ep=0 * one, sequence_length=2048,
    )  # fmt: skip
    apart = replace(TUNED, accumulation_bytes=10.0)
    sums = [layer_kind(layer_operators(LLAMA, 0), keys, h100(traits)).sums for traits in (TUNED, apart)]
    expected_s = 10.0 * sums[0].dense_parameters / h100(TUNED).rates.memory_bytes_per_s
    assert sums[1].weight_gradient_s - sums[0].weight_gradient_s == pytest.approx(expected_s)
    assert sums[1].forward_s == sums[0].forward_s
