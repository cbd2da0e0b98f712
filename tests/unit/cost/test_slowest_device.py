"""The slowest of many equal devices: its expected place, and what waits for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.model.load import load_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.slowest_device import REFERENCE_DEVICES, slowdown
from planner.predict.order_statistics import expected_maximum
from planner.predict.physics.physics import TUNED
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.text import complete_strategy, parse_assignments
from profiles.catalogue import load_cluster, load_device

SPREAD = 0.0175


@pytest.mark.parametrize("count", [2, 8, 64, 2048])
def test_expected_maximum_is_that_of_drawn_devices(count: int) -> None:
    drawn = np.random.default_rng(7).standard_normal((4_000_000 // count, count)).max(axis=1)
    assert expected_maximum(count) == pytest.approx(drawn.mean(), abs=0.03)


def test_one_device_waits_for_nobody() -> None:
    assert expected_maximum(1) == 0.0


def test_the_spread_is_five_percent_between_eight_devices() -> None:
    """The range of eight is twice the expected maximum."""
    assert 2 * expected_maximum(8) * SPREAD == pytest.approx(0.05, rel=0.02)


def test_slower_with_more_devices_beyond_the_reference() -> None:
    device = load_device("h100-sxm5-80gb")
    found = [slowdown(device, count) for count in (1, 8, REFERENCE_DEVICES, 64, 512, 16384)]
    assert found[:3] == [1.0, 1.0, 1.0]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(1 + SPREAD * (expected_maximum(16384) - expected_maximum(32)))


def test_a_fixed_clock_has_no_spread() -> None:
    assert slowdown(load_device("tpu-v5p"), 8960) == 1.0


def test_cores_slow_down_and_memory_does_not() -> None:
    cluster = load_cluster("dgx-h100", 2048)
    with_it = hardware_of(cluster, "bf16").rates
    without = hardware_of(cluster, "bf16", physics=replace(TUNED, waits_for_slowest=False)).rates
    slower = slowdown(cluster.pools[0].device, 2048)
    assert slower > 1.02
    for name in ("matmul_flops_per_s", "wide_matmul_flops_per_s", "wide_flops_per_s"):
        assert getattr(with_it, name) == pytest.approx(getattr(without, name) / slower)
    assert with_it.memory_bytes_per_s == without.memory_bytes_per_s


def test_a_step_of_the_same_work_takes_longer_on_more_devices() -> None:
    """Weak scaling without any data-parallel traffic in the open: what grows is the compute."""
    values = parse_assignments(["tp=4,pp=4,mbs=1,vpp=5,sp=true,zero=1,cp=2"], "--strategy")
    found = []
    for replicas in (2, 64):
        devices, batch = 32 * replicas, 32 * replicas
        strategy, _ = complete_strategy(values, devices, batch)
        problem = Problem(
            model=load_model("llama-3.1-70b"),
            cluster=load_cluster("dgx-h100", devices),
            workload=Workload(global_batch_size=batch, sequence_length=8192),
            constraints=Constraints(backends=("megatron",)),
        )
        plan = estimate(problem, strategy, None, values)
        assert sum(plan.breakdown_s.values()) == pytest.approx(plan.step_time_s)
        found.append(plan.breakdown_s["compute"])
    assert found[0] * 1.012 < found[1] < found[0] * 1.03
