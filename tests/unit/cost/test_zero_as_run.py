"""The cost of ZeRO in a framework that gathers, keeps or reduces at other moments than Megatron-Core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.backends.registry import physics_by_name
from planner.model.load import load_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.physics.physics import TUNED, Physics
from planner.predict.stage_memory import stage_memory
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster

MODEL = load_model("llama-3.1-8b")
WORKLOAD = Workload(global_batch_size=64, sequence_length=4096)
PIPED = Strategy(tp=2, sp=True, pp=4, dp_shard=4, num_microbatches=16, zero_stage=3)
RELIEFS = (Relief(),)
KEEPS_WHOLE = replace(TUNED, pipeline_keeps_whole=True)
REDUCES_LAST = replace(KEEPS_WHOLE, pipeline_reduces_last=True)


def costed(strategy: Strategy, traits: Physics) -> tuple[CostModel, StrategyRows, RowCost]:
    hardware = hardware_of(load_cluster("dgx-h100", num_devices=32), "bf16", physics=traits)
    costs = CostModel(MODEL, WORKLOAD, hardware, RELIEFS)
    rows = StrategyRows.of([strategy], RELIEFS)
    return costs, rows, costs.rows(rows)


def layer_and_tail_s(strategy: Strategy, traits: Physics) -> tuple[float, float]:
    costs, _, cost = costed(strategy, traits)
    tails = costs.tail_parts_s(cost, np.array([1e9]), np.array([0.0]))
    return float(cost.layer_s[0, 0]), float(tails[0][0])


def passes_bytes(strategy: Strategy, traits: Physics) -> float:
    _, rows, cost = costed(strategy, traits)
    moment = stage_memory(rows, cost, RELIEFS, strategy.pp).passes
    return float(moment.fixed_bytes[0, 0] + moment.layer_state_bytes[0, 0] * 8)


@pytest.mark.parametrize("zero", [2, 3])
def test_traffic_of_a_piped_layer_leaves_its_microbatches(zero: int) -> None:
    piped = replace(PIPED, zero_stage=zero)
    assert layer_and_tail_s(piped, KEEPS_WHOLE) == layer_and_tail_s(replace(piped, zero_stage=1), TUNED)
    assert layer_and_tail_s(piped, KEEPS_WHOLE)[0] < layer_and_tail_s(piped, TUNED)[0]


def test_a_reduction_behind_the_last_backward_pass_is_not_hidden() -> None:
    late = layer_and_tail_s(PIPED, REDUCES_LAST)[1]
    assert late == layer_and_tail_s(replace(PIPED, zero_stage=1, overlap_grad_reduce=False), TUNED)[1]
    assert late > layer_and_tail_s(PIPED, KEEPS_WHOLE)[1]


def test_whole_parameters_and_gradients_are_held_during_the_step() -> None:
    held = passes_bytes(PIPED, KEEPS_WHOLE)
    assert held == passes_bytes(replace(PIPED, zero_stage=1), TUNED)
    assert held > passes_bytes(PIPED, TUNED)


def test_without_a_pipeline_nothing_changes() -> None:
    flat = replace(PIPED, pp=1, dp_shard=16, num_microbatches=4)
    for zero in (0, 1, 2, 3):
        strategy = replace(flat, zero_stage=zero)
        assert layer_and_tail_s(strategy, REDUCES_LAST) == layer_and_tail_s(strategy, TUNED)
        assert passes_bytes(strategy, REDUCES_LAST) == passes_bytes(strategy, TUNED)


def test_torchtitan_runs_a_piped_plan_as_zero_1_without_overlap() -> None:
    """What its space calls a piped plan, ZeRO-1 without overlap, costs what a sharded one would."""
    torchtitan = physics_by_name()["torchtitan-compiled"]
    written = replace(PIPED, zero_stage=1, overlap_grad_reduce=False)
    assert layer_and_tail_s(PIPED, torchtitan) == layer_and_tail_s(written, torchtitan)
    assert passes_bytes(PIPED, torchtitan) == passes_bytes(written, torchtitan)


def test_fsdp_without_resharding_gathers_in_every_microbatch() -> None:
    """ZeRO-2 whose parameters are dropped after each backward pass: traffic moves from the step to its passes."""
    flat = replace(PIPED, pp=1, tp=8, dp_shard=4, num_microbatches=16, zero_stage=2)
    often = replace(TUNED, regathers_zero2=True)
    usual, moved = layer_and_tail_s(flat, TUNED), layer_and_tail_s(flat, often)
    assert moved[0] > usual[0]
    assert moved[1] < usual[1]
    for zero in (0, 1, 3):
        assert layer_and_tail_s(replace(flat, zero_stage=zero), often) == layer_and_tail_s(
            replace(flat, zero_stage=zero), TUNED
        )


def test_all_reduced_gradients_cost_more_than_scattered_ones_below_zero_three() -> None:
    flat = replace(PIPED, pp=1, tp=8, dp_shard=4, num_microbatches=16, overlap_grad_reduce=False)
    whole = replace(TUNED, zero_all_reduces=True)
    for zero, part in ((1, 1), (2, 0)):
        strategy = replace(flat, zero_stage=zero)
        assert layer_and_tail_s(strategy, whole)[part] > layer_and_tail_s(strategy, TUNED)[part]
    for zero in (0, 3):
        strategy = replace(flat, zero_stage=zero)
        assert layer_and_tail_s(strategy, whole) == layer_and_tail_s(strategy, TUNED)
