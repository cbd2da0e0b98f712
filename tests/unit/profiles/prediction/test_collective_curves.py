"""A measured collective curve is monotone, exact at its points, and sensible between and beyond them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from profiles.prediction.collective_curves import between_sizes, collective_curves, monotone
from profiles.prediction.rungs import Rung

Array = NDArray[np.float64]
SIZES: Array = np.exp2(np.arange(10.0, 31.0, 2.0))


def line(sizes: Array) -> Array:
    """10 us and 300 GB/s."""
    seconds: Array = 1e-5 + sizes / 300e9
    return seconds


def test_a_latency_bandwidth_line_is_reproduced_everywhere() -> None:
    curve = collective_curves({"x": (SIZES, line(SIZES))})["x"]
    between = np.array([5e4, 3e6, 7e8])
    np.testing.assert_allclose(curve.predict(between).time_s, line(between), rtol=1e-9)


def test_beyond_the_largest_size_the_last_slope_goes_on() -> None:
    curve = collective_curves({"x": (SIZES, line(SIZES))})["x"]
    found = curve.predict(np.array([SIZES[-1] * 4]))
    assert found.time_s[0] == pytest.approx(line(SIZES[-1:] * 4)[0])
    assert found.rung[0] == Rung.BOUNDARY
    assert found.sigma[0] > curve.predict(SIZES[-1:]).sigma[0]


def test_below_the_smallest_size_the_latency_holds() -> None:
    curve = collective_curves({"x": (SIZES, line(SIZES))})["x"]
    assert curve.predict(np.array([1.0])).time_s[0] == pytest.approx(line(SIZES[:1])[0])


def test_rungs_tell_a_direct_hit_from_a_bracket() -> None:
    curve = collective_curves({"x": (SIZES, line(SIZES))})["x"]
    assert curve.predict(np.array([SIZES[3], SIZES[3] * 1.5])).rung.tolist() == [Rung.EXACT, Rung.BRACKET]


def test_a_tenfold_dip_is_pooled_and_the_rest_is_left_alone() -> None:
    times = np.array([1.0, 2.0, 25.0, 2.2, 30.0])
    pooled = monotone(times)
    assert np.all(np.diff(pooled) >= 0)
    assert pooled[0] == pytest.approx(1.0)
    assert pooled[-1] == pytest.approx(30.0)
    assert pooled[2] == pytest.approx(pooled[3]) == pytest.approx(np.sqrt(25.0 * 2.2))


@given(st.lists(st.floats(1e-6, 1e2), min_size=2, max_size=12))
def test_times_never_fall_with_size(times: list[float]) -> None:
    sizes: Array = np.exp2(np.arange(10.0, 10.0 + len(times)))
    curve = collective_curves({"x": (sizes, np.array(times))})["x"]
    wanted = np.linspace(sizes[0], sizes[-1] * 2, 200)
    predicted = curve.predict(wanted).time_s
    assert np.all(np.diff(predicted) >= -1e-9 * predicted.max())


def test_the_cubic_never_leaves_the_interval_of_its_neighbours() -> None:
    sizes, times = np.array([1.0, 2.0, 3.0, 10.0, 11.0]), np.array([1.0, 1.0, 5.0, 5.1, 50.0])
    wanted = np.linspace(1.0, 11.0, 500)
    found = between_sizes(sizes, times, wanted)
    place = np.clip(np.searchsorted(sizes, wanted, side="right") - 1, 0, 3)
    assert np.all(found >= times[place] - 1e-12)
    assert np.all(found <= times[place + 1] + 1e-12)


def test_the_spread_between_points_comes_from_all_curves_together() -> None:
    random = np.random.default_rng(0)
    noisy = {name: (SIZES, line(SIZES) * np.exp(0.2 * random.standard_normal(len(SIZES)))) for name in range(8)}
    smooth = {name: (SIZES, line(SIZES)) for name in range(8)}
    assert collective_curves(noisy)[0].sigma_between > 2 * collective_curves(smooth)[0].sigma_between
