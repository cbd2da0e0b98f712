"""What an 8-bit run keeps under TransformerEngine: inputs of one byte, copies of weights of two; experts and layers."""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.load import load_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.physics.physics import Physics
from planner.question.problem import Workload
from planner.question.routing import EVEN
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster

TOKENS, HIDDEN, WIDTH, TOP_K = 4096, 4096, 1536, 8
"""A micro-batch of Qwen3-235B."""


def _cost(precision: str, *, keeps: bool, zero_stage: int = 1) -> RowCost:
    hardware = hardware_of(load_cluster("dgx-h100"), precision, physics=Physics(eight_bit_experts=keeps))
    workload = Workload(global_batch_size=8, sequence_length=TOKENS, precision=precision, routing=EVEN)  # type: ignore[arg-type]  # one of the two below
    costs = CostModel(load_model("qwen3-235b-a22b"), workload, hardware, (Relief(),))
    return costs.rows(StrategyRows.of([Strategy(ep=8, dp_shard=8, zero_stage=zero_stage)], (Relief(),)))


def test_inputs_of_both_grouped_matmuls_halve_by_hand() -> None:
    """8 copies of a token, a hidden state each for up and gate, a width each for down: one byte an element less."""
    less = _cost("fp8", keeps=False).saved_bytes - _cost("fp8", keeps=True).saved_bytes
    assert less == pytest.approx(np.full((1, 1), TOKENS * TOP_K * (HIDDEN + WIDTH)))


@pytest.mark.parametrize(("zero_stage", "bytes_each"), [(1, 2.0), (3, 0.0)])
def test_copies_of_expert_weights_by_hand(zero_stage: int, bytes_each: float) -> None:
    with_them, without = (_cost("fp8", keeps=keeps, zero_stage=zero_stage) for keeps in (True, False))
    assert with_them.expert_state.weights - without.expert_state.weights == pytest.approx(bytes_each)
    assert (with_them.dense_state.weights == without.dense_state.weights).all()


def test_nothing_changes_in_sixteen_bit() -> None:
    with_them, without = (_cost("bf16", keeps=keeps) for keeps in (True, False))
    assert (with_them.saved_bytes == without.saved_bytes).all()
    assert (with_them.expert_state.weights == without.expert_state.weights).all()


LLAMA_TOKENS, LLAMA_HIDDEN, LLAMA_FFN = 8192, 4096, 14336


def _dense(precision: str, *, inputs: bool = False, weights: bool = False, zero_stage: int = 1) -> RowCost:
    physics = Physics(eight_bit_inputs=inputs, eight_bit_weights=weights)
    hardware = hardware_of(load_cluster("dgx-h100"), precision, physics=physics)
    workload = Workload(global_batch_size=8, sequence_length=LLAMA_TOKENS, precision=precision)  # type: ignore[arg-type]  # one of the two below
    costs = CostModel(load_model("llama-3.1-8b"), workload, hardware, (Relief(),))
    return costs.rows(StrategyRows.of([Strategy(dp_shard=8, zero_stage=zero_stage)], (Relief(),)))


def test_inputs_of_a_layer_by_hand() -> None:
    """qkv, gate and up, down: a byte an element less; the projection's copy beside attention's output: one more."""
    less = _dense("fp8").saved_bytes - _dense("fp8", inputs=True).saved_bytes
    by_hand = LLAMA_TOKENS * (LLAMA_HIDDEN + LLAMA_HIDDEN + LLAMA_FFN - LLAMA_HIDDEN)
    assert less == pytest.approx(np.full((1, 1), by_hand))


@pytest.mark.parametrize(("zero_stage", "bytes_each"), [(0, 2.0), (1, 2.0), (3, 0.0)])
def test_copies_of_the_layers_weights_by_hand(zero_stage: int, bytes_each: float) -> None:
    """Of the layers alone: embedding and head stay in 16 bit."""
    with_them, without = (_dense("fp8", weights=copies, zero_stage=zero_stage) for copies in (True, False))
    more = with_them.frozen.layer - without.frozen.layer
    assert more == pytest.approx(bytes_each * without.layer_dense)
    assert (with_them.frozen.head == without.frozen.head).all()
    assert (with_them.frozen.embedding == without.frozen.embedding).all()
    assert (with_them.frozen.least_layer == without.frozen.least_layer).all(), "a bound over every sharding"


def test_layers_in_sixteen_bit_keep_what_they_kept() -> None:
    with_them, without = _dense("bf16", inputs=True, weights=True), _dense("bf16")
    assert (with_them.saved_bytes == without.saved_bytes).all()
    assert (with_them.frozen.layer == without.frozen.layer).all()
