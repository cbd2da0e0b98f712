"""Transfers between stages on the stream that computes, and heads off the tensor cores' sixteen bytes."""

from __future__ import annotations

import numpy as np
import pytest

from planner.predict.cost.attention_time import MISALIGNED_FRACTION, attention_seconds
from planner.predict.cost.efficiency import device_rates
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel
from planner.predict.physics.physics import Physics
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_device
from tests.plan_factory import make_cluster, make_model


def lost_s(pp: int, *, blocking: bool) -> tuple[float, float]:
    """Seconds that a stage loses on a micro-batch, and those of one hop."""
    hardware = hardware_of(make_cluster(16), "bf16", None, physics=Physics(blocking_hops=blocking))
    strategy = Strategy(tp=2, pp=pp, dp_shard=16 // (2 * pp), num_microbatches=8)
    rows = StrategyRows.of([strategy], (Relief(),))
    workload = Workload(global_batch_size=64, sequence_length=2048)
    costs = CostModel(make_model(), workload, hardware, (Relief(),))
    columns = costs.rows(rows, costs.keyed(rows))
    return float(columns.stage_host_s[0]), float(columns.hop_s[0])


@pytest.mark.parametrize(("pp", "transfers"), [(1, 0), (2, 2), (4, 4)])
def test_each_transfer_of_a_micro_batch_holds_up_its_stage(pp: int, transfers: int) -> None:
    held_s, hop_s = lost_s(pp, blocking=True)
    assert held_s == pytest.approx(transfers * hop_s)
    assert (hop_s > 0) == (pp > 1)
    assert lost_s(pp, blocking=False)[0] == 0.0


def test_unfused_products_of_heads_off_sixteen_bytes_are_slower() -> None:
    rates = device_rates(load_device("a100-sxm4-80gb"), "bf16")
    arguments = {
        "flops": np.array([1e12]), "scores": np.array([12.0 * 2048**2]), "products": np.array([12.0]),
        "longest": 2048.0, "dropout": False,
    }  # fmt: skip
    even, odd, next_even = (
        float(attention_seconds("unfused", "ampere", rates, head_dim=width, **arguments)[0][0])  # type: ignore[arg-type]
        for width in (144.0, 150.0, 152.0)
    )
    assert odd > next_even > even
    matmul_s = float(rates.wide_matmul_s(np.array([2048.0]), np.array([2048.0]), np.array([150.0]), 12.0)[0])
    matmul_s += float(rates.wide_matmul_s(np.array([2048.0]), np.array([150.0]), np.array([2048.0]), 12.0)[0])
    assert odd - even == pytest.approx(matmul_s * (1.0 / MISALIGNED_FRACTION - 1.0), rel=0.15)
