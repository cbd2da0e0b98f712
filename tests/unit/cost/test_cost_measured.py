"""Do measurements replace datasheet predictions, and only where they are near?"""

from __future__ import annotations

import numpy as np
import pytest

from planner.cost.hardware import hardware_of
from planner.errors import DocumentInvalid
from planner.model.builtin import builtin_model
from planner.problem import Problem, Workload
from planner.search.estimate import estimate
from planner.strategy import Strategy
from profiles.catalogue import load_cluster
from profiles.device import Provenance
from profiles.table import MeasuredPoint, ProfileTable

SOURCE = Provenance(confidence="measured", source="unit test")


def one(value: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A single shape."""
    return np.array([value])


def matmul_point(m: int, n: int, k: int, time_s: float) -> MeasuredPoint:
    return MeasuredPoint(operator="matmul", dtype="bf16", shape={"m": m, "n": n, "k": k}, time_s=time_s, source=SOURCE)


def test_a_measured_shape_gives_the_measured_time() -> None:
    cluster = load_cluster("dgx-h100", 8)
    table = ProfileTable(device=cluster.pools[0].device.name, points=(matmul_point(4096, 8192, 8192, 1.23e-3),))
    rates = hardware_of(cluster, "bf16", table).rates
    assert rates.matmul_s(one(4096), one(8192), one(8192))[0] == pytest.approx(1.23e-3, rel=1e-9)


def test_a_far_shape_keeps_the_datasheet_prediction() -> None:
    cluster = load_cluster("dgx-h100", 8)
    table = ProfileTable(points=(matmul_point(4096, 8192, 8192, 1.0),))
    measured, datasheet = hardware_of(cluster, "bf16", table).rates, hardware_of(cluster, "bf16").rates
    shape = (one(16), one(128), one(128))
    assert measured.matmul_s(*shape)[0] == datasheet.matmul_s(*shape)[0]


def test_a_near_shape_takes_the_neighbours_utilisation() -> None:
    cluster = load_cluster("dgx-h100", 8)
    datasheet = hardware_of(cluster, "bf16").rates
    slow = 2.0 * float(datasheet.matmul_s(one(4096), one(8192), one(8192))[0])
    table = ProfileTable(points=(matmul_point(4096, 8192, 8192, slow),))
    measured = hardware_of(cluster, "bf16", table).rates
    shape = (one(8192), one(8192), one(8192))
    assert measured.matmul_s(*shape)[0] == pytest.approx(2.0 * float(datasheet.matmul_s(*shape)[0]), rel=1e-6)


def test_measured_collectives_are_interpolated_in_size_and_left_alone_for_other_groups() -> None:
    cluster = load_cluster("dgx-h100", 16)
    plain = hardware_of(cluster, "bf16")
    points = tuple(
        MeasuredPoint(
            operator="all_reduce",
            dtype="bf16",
            shape={"size_bytes": size, "group_size": 8, "stride": 1},
            time_s=3.0 * float(plain.collective_s("all_reduce", one(size), one(8), one(1))[0]),
            source=SOURCE,
        )
        for size in (2**20, 2**24, 2**28)
    )
    measured = hardware_of(cluster, "bf16", ProfileTable(points=points))
    for size in (2**20, 2**22, 2**28):
        ours = measured.collective_s("all_reduce", one(size), one(8), one(1))[0]
        assert ours == pytest.approx(3.0 * float(plain.collective_s("all_reduce", one(size), one(8), one(1))[0]))
    other = measured.collective_s("all_reduce", one(2**24), one(16), one(1))[0]
    assert other == plain.collective_s("all_reduce", one(2**24), one(16), one(1))[0]


def test_a_plan_with_a_profile_says_so_and_has_its_own_identity() -> None:
    cluster = load_cluster("dgx-h100", 8)
    model = builtin_model("llama-3.1-8b")
    base = Problem(model=model, cluster=cluster, workload=Workload(global_batch_size=8, sequence_length=4096))
    table = ProfileTable(device=cluster.pools[0].device.name, points=(matmul_point(4096, 4096, 4096, 5e-3),))
    measured = base.model_copy(update={"profile": table})
    assert measured.profile_id == table.profile_id
    assert measured.problem_id != base.problem_id
    strategy = Strategy(dp_shard=8, zero_stage=3)
    slow, fast = estimate(measured, strategy), estimate(base, strategy)
    assert slow.step_time_s > fast.step_time_s
    assert slow.provenance["profile"] == table.profile_id
    assert any("measurements of profile" in note for note in slow.assumptions)
    assert any("datasheet predictions" in note for note in fast.assumptions)


def test_a_profile_of_another_device_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="measured on a100"):
        hardware_of(
            load_cluster("dgx-h100", 8), "bf16", ProfileTable(device="a100", points=(matmul_point(1, 1, 1, 1.0),))
        )
