"""Casts around 8-bit matmuls: once an input and a gradient, or anew for each operand of each pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.backends.torchtitan.physics import TORCHTITAN, TORCHTITAN_COMPILED
from planner.model.load import load_model
from planner.model.operator import Operator
from planner.model.operators import layer_operators
from planner.predict.cost.efficiency import CAST_BYTES, LAUNCH_S
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.operator_time import ROWWISE_PRODUCT, operator_backward_s, operator_forward_s
from planner.predict.layer_keys import LayerKeys
from planner.predict.physics.physics import TUNED
from profiles.catalogue import load_cluster

TOKENS = 8192
QKV = 4096 + 2 * 1024


def keys() -> LayerKeys:
    one, none = np.ones(1), np.zeros(1)
    return LayerKeys(
        tp=one, sp=none, cp=one, ring=none, ep=one, etp=one, micro_batch_size=one, overlap_tp=none, overlap_ep=none,
        sequence_length=TOKENS,
    )  # fmt: skip


def hardware(precision: str, *, anew: bool) -> Hardware:
    return hardware_of(load_cluster("dgx-h100", 8), precision, physics=replace(TUNED, dynamic_casts=anew))


def qkv() -> Operator:
    return next(each for each in layer_operators(load_model("llama-3.1-8b"), 0) if each.name == "qkv")


def seconds(precision: str, *, anew: bool) -> tuple[float, float, float]:
    where = hardware(precision, anew=anew)
    forward_s = operator_forward_s(qkv(), keys(), where)
    input_s, weight_s = operator_backward_s(qkv(), keys(), where, forward_s)
    return float(forward_s[0]), float(input_s[0]), float(weight_s[0])


def test_bytes_of_casts_by_hand() -> None:
    """Input and weight forward (5 each, for 4 of the input alone); backward gradient and weight, transposed as well."""
    rate = hardware("fp8", anew=True).rates.memory_bytes_per_s
    taken, weights, gradient = TOKENS * 4096.0, QKV * 4096.0, TOKENS * float(QKV)
    once, anew = seconds("fp8", anew=False), seconds("fp8", anew=True)
    assert anew[0] - once[0] == pytest.approx((5.0 * (taken + weights) - CAST_BYTES * taken) / rate)
    assert anew[1] - once[1] == pytest.approx((7.0 * (gradient + weights) - CAST_BYTES * gradient) / rate)
    assert anew[2] - once[2] == pytest.approx(2.0 * taken / rate + LAUNCH_S)


def test_nothing_is_cast_in_sixteen_bit() -> None:
    assert seconds("bf16", anew=True) == seconds("bf16", anew=False)


@pytest.mark.parametrize(("precision", "factor"), [("fp8", ROWWISE_PRODUCT), ("bf16", 1.0)])
def test_a_scale_a_row_slows_each_eight_bit_product(precision: str, factor: float) -> None:
    plain = hardware(precision, anew=True)
    rowwise = replace(plain, physics=replace(plain.physics, rowwise_scales=True))
    sizes = np.array([float(TOKENS)]), np.array([float(QKV)]), np.array([4096.0]), np.array([1.0])
    product_s = float(plain.rates.matmul_s(*sizes)[0])
    more_s = operator_forward_s(qkv(), keys(), rowwise) - operator_forward_s(qkv(), keys(), plain)
    assert more_s[0] == pytest.approx((factor - 1.0) * product_s)
    passes_s = [operator_backward_s(qkv(), keys(), where, np.array([product_s])) for where in (plain, rowwise)]
    assert sum(passes_s[1]) - sum(passes_s[0]) == pytest.approx(2.0 * (factor - 1.0) * product_s)


def test_torchtitan_casts_by_the_present_largest_value() -> None:
    assert TORCHTITAN.dynamic_casts
    assert TORCHTITAN_COMPILED.dynamic_casts
    assert not TUNED.dynamic_casts
    assert TORCHTITAN_COMPILED.rowwise_scales, "as its files say (torchtitan.values, float8_recipe)"
