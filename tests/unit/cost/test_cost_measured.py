"""Measurements replace datasheet predictions, and only where they reach."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.errors import DocumentInvalid, ProfileMissing
from planner.model.builtin import builtin_model
from planner.predict.cost.efficiency import sustained_fraction
from planner.predict.cost.hardware import hardware_of
from planner.question.problem import Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from profiles.prediction.build_curves import build_curves
from profiles.prediction.collective_curves import collective_curves
from profiles.prediction.profile import CollectiveKey, OperatorTable, Profile, TableOrigin
from profiles.prediction.profile_file import identified
from profiles.prediction.profile_folder import keep
from profiles.prediction.reference import ProfileReference
from profiles.prediction.roofline import roofline_of

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
CLUSTER = load_cluster("dgx-h100", 8)
DEVICE = CLUSTER.pools[0].device


def one(value: float) -> Array:
    """A single shape."""
    return np.array([value])


def matmul_profile(*points: tuple[float, float, float, float], device: str = DEVICE.name) -> Profile:
    """A profile of (m, n, k, seconds)."""
    roof = roofline_of(DEVICE, "bf16")
    assert roof is not None
    m, n, k, seconds = np.array(points).T
    curves = build_curves(np.stack([n, k], axis=1), m, roof.matmul_s(m, n, k), seconds)
    origin = TableOrigin(operator="matmul", dtype="bf16", device=device, num_points=len(points))
    return identified(Profile(device, {("matmul", "bf16", ""): OperatorTable(curves, roof, origin)}))


def collective_profile(curves: dict[CollectiveKey, tuple[Array, Array]]) -> Profile:
    """A profile of collectives alone."""
    return identified(Profile(DEVICE.name, collectives=collective_curves(curves)))


def test_a_measured_shape_gives_the_measured_time_at_the_rate_inside_a_step() -> None:
    rates = hardware_of(CLUSTER, "bf16", matmul_profile((4096, 8192, 8192, 1.23e-3))).rates
    expected = 1.23e-3 / sustained_fraction(DEVICE)
    assert rates.matmul_s(one(4096), one(8192), one(8192))[0] == pytest.approx(expected, rel=1e-9)


def test_a_far_shape_keeps_the_datasheet_prediction() -> None:
    measured = hardware_of(CLUSTER, "bf16", matmul_profile((4096, 8192, 8192, 1.0))).rates
    datasheet = hardware_of(CLUSTER, "bf16").rates
    shape = (one(16), one(128), one(128))
    assert measured.matmul_s(*shape)[0] == datasheet.matmul_s(*shape)[0]


def test_a_near_shape_takes_the_neighbours_utilisation() -> None:
    roof = roofline_of(DEVICE, "bf16")
    assert roof is not None
    slow = 3.0 * float(roof.matmul_s(one(4096), one(8192), one(8192))[0])
    rates = hardware_of(CLUSTER, "bf16", matmul_profile((4096, 8192, 8192, slow))).rates
    shape = (one(8192), one(8192), one(4096))
    expected = 3.0 * float(roof.matmul_s(*shape)[0]) / sustained_fraction(DEVICE)
    assert rates.matmul_s(*shape)[0] == pytest.approx(expected, rel=1e-6)


def test_no_work_takes_no_time_whatever_was_measured() -> None:
    rates = hardware_of(CLUSTER, "bf16", matmul_profile((4096, 8192, 8192, 1.0))).rates
    assert rates.matmul_s(one(0), one(8192), one(8192))[0] == 0.0


def test_gradients_look_up_their_own_shapes() -> None:
    model = builtin_model("llama-3.1-8b")
    base = Problem(model=model, cluster=CLUSTER, workload=Workload(global_batch_size=8, sequence_length=4096))
    # One site far slower than the rest: the weight gradient of (m, n, k) is the product [n, m] x [m, k].
    fast = [(m, n, k, 2 * m * n * k / 700e12) for m in (4096.0, 14336.0) for n in (4096.0, 14336.0) for k in (4096.0,)]
    slow = [(14336.0, 4096.0, 4096.0, 50.0)]
    quick = estimate(
        base.model_copy(update={"profile": keep(matmul_profile(*fast))}), Strategy(dp_shard=8, zero_stage=3)
    )
    stuck = estimate(
        base.model_copy(update={"profile": keep(matmul_profile(*fast[:2], *slow))}), Strategy(dp_shard=8, zero_stage=3)
    )
    assert stuck.step_time_s > 10 * quick.step_time_s


def test_a_measured_group_gives_its_curve_and_other_groups_the_models_correction() -> None:
    cluster = load_cluster("dgx-h100", 16)
    plain = hardware_of(cluster, "bf16")
    sizes = np.array([2.0**20, 2.0**24, 2.0**28])

    def model(group: int, at: Array = sizes) -> Array:
        return plain.collective_s("all_reduce", at, np.full(len(at), float(group)), np.ones(len(at)))

    measured = hardware_of(
        cluster, "bf16", collective_profile({CollectiveKey("all_reduce", 8, 1): (sizes, 3.0 * model(8))})
    )
    ours = measured.collective_s("all_reduce", sizes, np.full(3, 8.0), np.ones(3))
    np.testing.assert_allclose(ours, 3.0 * model(8), rtol=1e-12)
    four = measured.collective_s("all_reduce", sizes, np.full(3, 4.0), np.ones(3))
    np.testing.assert_allclose(four, 3.0 * model(4), rtol=1e-12)
    across = measured.collective_s("all_reduce", sizes, np.full(3, 16.0), np.ones(3))
    np.testing.assert_array_equal(across, model(16))


def test_a_plan_with_a_profile_says_so_and_has_its_own_identity() -> None:
    model = builtin_model("llama-3.1-8b")
    base = Problem(model=model, cluster=CLUSTER, workload=Workload(global_batch_size=8, sequence_length=4096))
    reference = keep(matmul_profile((4096, 4096, 4096, 5e-3)))
    measured = base.model_copy(update={"profile": reference})
    assert measured.profile_id == reference.profile_id
    assert measured.problem_id != base.problem_id
    strategy = Strategy(dp_shard=8, zero_stage=3)
    slow, fast = estimate(measured, strategy), estimate(base, strategy)
    assert slow.step_time_s > fast.step_time_s
    assert slow.provenance["profile"] == reference.profile_id
    assert any("measured points of profile" in note for note in slow.assumptions)
    assert any("datasheet predictions" in note for note in fast.assumptions)


def test_a_profile_of_another_device_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="measured on a100"):
        hardware_of(CLUSTER, "bf16", matmul_profile((1, 1, 1, 1.0), device="a100"))


def test_a_profile_that_is_not_on_this_machine_is_missing_not_guessed(tmp_path: Path) -> None:
    reference = ProfileReference(profile_id="1" * 64, device=DEVICE.name, num_points=1)
    with pytest.raises(ProfileMissing, match="not here"):
        hardware_of(CLUSTER, "bf16", reference)


def _across_nodes(cluster_name: str, *, concurrent: bool) -> float:
    """Measured seconds of a group of two, one device a node, over what its curve says."""
    cluster = load_cluster(cluster_name, 16)
    sizes = np.array([2.0**20, 2.0**28])
    curves = collective_curves({CollectiveKey("all_reduce", 2, 2, concurrent): (sizes, np.array([1e-3, 1e-1]))})
    profile = identified(Profile(cluster.pools[0].device.name, collectives=curves))
    hardware = hardware_of(cluster, "bf16", profile)
    seconds = hardware.collective_s("all_reduce", sizes[1:], np.array([2.0]), np.array([8.0]))
    return float(seconds[0]) / 1e-1


def test_a_group_measured_alone_pays_for_the_nics_that_it_will_share() -> None:
    # DGX H100: a NIC a device, so alone or not is the same.  P4d: 4 NICs for 8 devices, so two siblings share one.
    assert _across_nodes("dgx-h100", concurrent=False) == pytest.approx(1.0)
    assert _across_nodes("aws-p4d", concurrent=False) == pytest.approx(2.0)
    assert _across_nodes("aws-p4d", concurrent=True) == pytest.approx(1.0)
