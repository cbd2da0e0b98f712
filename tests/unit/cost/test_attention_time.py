"""Attention takes what its kernel's published rates say, and unfused attention moves its scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.model.operators import head_operators, layer_operators
from planner.predict.cost.attention_time import attention_seconds, fused_kernel, fused_seconds
from planner.predict.cost.efficiency import LAUNCH_S, DeviceRates, device_rates
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.operator_time import (
    UNFUSED_PASSES,
    is_wide,
    moved_bytes,
    operator_backward_s,
    operator_forward_s,
)
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys
from planner.predict.physics.kernels import AttentionChoice, attention_on
from planner.predict.physics.physics import TUNED, Physics
from planner.question.routing import EVEN
from profiles.catalogue import load_cluster, load_device
from profiles.catalogue.architectures import FusedAttentionRates
from tests.plan_factory import make_model

H100 = 989e12
CUDNN_HOPPER, FLASH2_HOPPER = fused_kernel("best", "hopper"), fused_kernel("flash2", "hopper")
FLASH2_AMPERE = fused_kernel("flash2", "ampere")


def keys(sequence: int = 4096, **columns: float) -> LayerKeys:
    values = dict.fromkeys(KEY_COLUMNS, 1.0) | {"sp": 0.0, "ring": 0.0, "overlap_tp": 0.0, "overlap_ep": 0.0} | columns
    return LayerKeys(
        **{name: np.array([value]) for name, value in values.items()}, sequence_length=sequence, routing=EVEN
    )


def hardware(precision: str = "bf16", traits: Physics = TUNED) -> Hardware:
    return replace(hardware_of(load_cluster("dgx-h100"), precision), physics=traits)


@pytest.mark.parametrize(
    ("kernel", "length", "head_dim", "backward", "published"),
    [
        (FLASH2_HOPPER, 512, 128, False, 191e12),
        (FLASH2_HOPPER, 16384, 128, False, 335e12),
        (FLASH2_HOPPER, 16384, 64, False, 299e12),
        (CUDNN_HOPPER, 512, 128, False, 315e12),
        (CUDNN_HOPPER, 16384, 128, False, 539e12),
        (CUDNN_HOPPER, 16384, 64, False, 388e12),
        (CUDNN_HOPPER, 16384, 128, True, 0.95 * 516e12),
        (FLASH2_HOPPER, 16384, 128, True, 0.95 * 322e12),
    ],
)
def test_rates_meet_the_published_benchmark(
    kernel: FusedAttentionRates, length: int, head_dim: int, backward: bool, published: float
) -> None:
    """arXiv 2407.08608, figures 5 and 6, within 6 %."""
    flops = np.array([1e15])
    seconds = fused_seconds(kernel, flops, length, head_dim, H100, backward=backward)
    assert float((flops / seconds)[0]) == pytest.approx(published, rel=0.06)


def test_a_kernel_by_hand() -> None:
    seconds = fused_seconds(FLASH2_AMPERE, np.array([1e12]), 2048.0, 96.0, 312e12, backward=True)
    half = 510.0 * 312 / 989
    rate = 312e12 * 0.57 * (1 - 0.11 * 0.5) * 2048 / (2048 + half)
    assert float(seconds[0]) == pytest.approx(1e12 / rate + LAUNCH_S)


def rates() -> DeviceRates:
    return device_rates(load_device("a100-sxm4-80gb"), "fp16")


@pytest.mark.parametrize(("dropout", "forward_bytes", "backward_bytes"), [(True, 8.0, 9.0), (False, 3.0, 4.0)])
def test_unfused_attention_writes_every_score(dropout: bool, forward_bytes: float, backward_bytes: float) -> None:
    """Eight heads of 2,048 tokens: beside the matmuls so many bytes a score, all pairs computed."""
    scores, products, device = np.array([8 * 2048.0**2]), np.array([8.0]), rates()
    sizes = {"flops": np.array([1.0]), "scores": scores, "products": products}
    forward_s, backward_s = attention_seconds(
        "unfused", "ampere", device, **sizes, longest=2048, head_dim=128, dropout=dropout
    )
    side, width = np.array([2048.0]), np.array([128.0])
    pair_s = device.wide_matmul_s(side, side, width, products) + device.wide_matmul_s(side, width, side, products)
    assert forward_s == pytest.approx(pair_s + device.memory_s(forward_bytes * scores))
    assert backward_s == pytest.approx(2 * pair_s + device.memory_s(backward_bytes * scores))


@pytest.mark.parametrize(("choice", "architecture", "runs"), [
    ("best", "volta", "unfused"), ("best", "ampere", "best"), ("flash2", "volta", "flash2"),
])  # fmt: skip
def test_the_best_kernel_of_devices_without_fused_ones_is_unfused(
    choice: AttentionChoice, architecture: str, runs: str
) -> None:
    assert attention_on(choice, architecture) == runs


def test_an_unknown_architecture_runs_flash2_as_other_devices_do() -> None:
    sizes: dict[str, Any] = {"flops": np.array([1e12]), "scores": np.array([1e8]), "products": np.array([8.0])}
    sizes |= {"longest": 4096.0, "head_dim": 128.0, "dropout": False}
    device = device_rates(load_device("mi300x"), "bf16")
    seconds = attention_seconds("flash2", "cdna3", device, **sizes)
    assert seconds == attention_seconds("best", "cdna3", device, **sizes)


def test_casts_cost_four_bytes_an_element_of_input_and_of_incoming_gradient() -> None:
    """An 8-bit matmul [4096, h] x [h, n]: casts of its input forward, of its output's gradient backward."""
    operator = next(op for op in layer_operators(make_model(), 0) if op.op_class == "matmul")
    eight = hardware("fp8")
    m, n, k = np.array([4096.0]), np.array([float(operator.out_features)]), np.array([float(operator.in_features)])
    matmul_s, per_byte_s = eight.rates.matmul_s(m, n, k), 1.0 / eight.rates.memory_bytes_per_s
    forward_s = operator_forward_s(operator, keys(), eight)
    assert forward_s == pytest.approx(matmul_s + 4.0 * m * k * per_byte_s + LAUNCH_S)
    input_s, weight_s = operator_backward_s(operator, keys(), eight, forward_s)
    assert input_s == pytest.approx(matmul_s + 4.0 * m * n * per_byte_s + LAUNCH_S)
    assert weight_s == pytest.approx(matmul_s)


def test_the_head_stays_in_sixteen_bit() -> None:
    operator = next(op for op in head_operators(make_model()) if op.op_class == "matmul")
    assert is_wide(operator)
    sixteen, eight = hardware("bf16"), hardware("fp8")
    assert operator_forward_s(operator, keys(), eight) == pytest.approx(operator_forward_s(operator, keys(), sixteen))


def test_frozen_weights_have_no_gradient() -> None:
    operator = next(op for op in layer_operators(make_model(), 0) if op.op_class == "matmul")
    operator, frozen = replace(operator, frozen=True), hardware()
    forward_s = operator_forward_s(operator, keys(), frozen)
    input_s, weight_s = operator_backward_s(operator, keys(), frozen, forward_s)
    assert input_s == pytest.approx(forward_s)
    assert not weight_s.any()


def test_unfused_norms_move_nine_times_the_bytes() -> None:
    operator = next(op for op in layer_operators(make_model(), 0) if op.op_class == "norm")
    fused, eager = hardware(), hardware(traits=Physics(unfused=frozenset({"norm"})))
    bytes_moved = moved_bytes(operator, keys())
    per_byte_s = 1.0 / fused.rates.memory_bytes_per_s
    assert operator_forward_s(operator, keys(), fused) == pytest.approx(bytes_moved * per_byte_s + LAUNCH_S)
    expected = UNFUSED_PASSES["norm"] * bytes_moved * per_byte_s + LAUNCH_S
    assert operator_forward_s(operator, keys(), eager) == pytest.approx(expected)


def test_fp32_takes_four_bytes_an_element_and_no_tensor_core() -> None:
    device = load_device("a100-sxm4-80gb")
    wide, narrow = device_rates(device, "fp32"), device_rates(device, "bf16")
    assert wide.memory_bytes_per_s == pytest.approx(0.5 * narrow.memory_bytes_per_s)
    assert wide.matmul_flops_per_s == pytest.approx(0.9 * 19.5e12)
