"""The bytes that sequence parallelism gathers and scatters around a layer, in 16 and in 8 bit."""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.operators import layer_operators
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.layer import layer_kind
from planner.predict.layer_keys import LayerKeys
from profiles.catalogue import load_cluster
from tests.plan_factory import make_model

TOKENS, TP = 4096, 8


def keys(sp: int) -> LayerKeys:
    one = np.ones(1)
    return LayerKeys(
        tp=TP * one, sp=sp * one, cp=one, ring=one, ep=one, etp=one, micro_batch_size=one, overlap_tp=0 * one,
        overlap_ep=0 * one, sequence_length=TOKENS,
    )  # fmt: skip


def reductions_s(hardware: Hardware, sp: int) -> float:
    """Forward communication of the row-parallel matmuls of one layer."""
    kind = layer_kind(layer_operators(make_model(), 0), keys(sp), hardware)
    return float(sum(times[0] for times in kind.reduction_times_s.values()))


def collective_s(hardware: Hardware, name: str, size_bytes: float) -> float:
    ones = np.ones(1)
    return float(hardware.collective_s(name, size_bytes * ones, TP * ones, ones)[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(("precision", "gathered"), [("bf16", 2.0), ("fp8", 1.0)])
def test_what_8_bit_matmuls_gather_travels_in_8_bit_and_sums_in_16(precision: str, gathered: float) -> None:
    hardware = hardware_of(load_cluster("dgx-h100"), precision)
    elements = float(TOKENS * make_model().hidden_size)
    around = collective_s(hardware, "reduce_scatter", 2.0 * elements)
    around += collective_s(hardware, "all_gather", gathered * elements)
    assert reductions_s(hardware, sp=1) == pytest.approx(2 * around)
    assert reductions_s(hardware, sp=0) == pytest.approx(2 * collective_s(hardware, "all_reduce", 2.0 * elements))
