"""The view of a profile gives its curves of collectives as they are measured, and keeps the answer small."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.answers.views.fits import MOST_POINTS, CollectiveFitView, fits_view
from profiles.catalogue import load_device
from profiles.prediction.collective_curves import CollectiveCurve
from profiles.prediction.curve_table import Z80
from profiles.prediction.profile import CollectiveKey, Profile, TableOrigin

DEVICE = "h100-sxm5-80gb"


def view_of(sizes: np.ndarray, times_s: np.ndarray) -> CollectiveFitView:
    curve = CollectiveCurve(sizes, times_s, sigma_between=0.08)
    origin = TableOrigin(operator="all_reduce", dtype="", num_points=len(sizes))
    profile = Profile(
        DEVICE,
        collectives={CollectiveKey("all_reduce", 8, 1): curve},
        collective_origins=(origin,),
        profile_id="f" * 64,
    )
    (found,) = fits_view(profile, load_device(DEVICE)).collectives
    return found


def test_points_are_sizes_times_and_bus_bandwidths_of_what_was_measured() -> None:
    found = view_of(np.array([1024.0, 1048576.0, 4194304.0]), np.array([1e-5, 2e-5, 5e-5]))
    assert found.points.sizes_bytes == (1024.0, 1048576.0, 4194304.0)
    assert found.points.times_s == (1e-5, 2e-5, 5e-5)
    # 2 x 7 / 8 on the bus of each algorithm bandwidth (doc/PERFORMANCE.md of nccl-tests), four digits.
    assert found.points.bus_bandwidths_bytes_per_s == (1.792e8, 9.175e10, 1.468e11)
    assert found.sigma.factor_80 == pytest.approx(math.exp(Z80 * 0.08))


def test_a_long_curve_keeps_its_ends_and_its_fastest_point() -> None:
    sizes = np.exp2(np.linspace(10.0, 30.0, 500))
    times_s = 1e-5 + sizes / 2e11
    times_s[300:] *= 2.0
    found = view_of(sizes, times_s)
    points = found.points
    assert len(points.sizes_bytes) == len(points.times_s) == len(points.bus_bandwidths_bytes_per_s) <= MOST_POINTS
    assert (points.sizes_bytes[0], points.sizes_bytes[-1]) == (found.smallest_bytes, found.largest_bytes)
    assert max(points.bus_bandwidths_bytes_per_s) == pytest.approx(found.largest_bus_bandwidth_bytes_per_s, rel=1e-3)
    gaps = np.diff(np.log2(points.sizes_bytes))
    assert gaps.max() < 2 * 20 / (MOST_POINTS - 2)
    assert found.num_sizes == 500
