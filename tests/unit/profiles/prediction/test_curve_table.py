"""Measured shapes are answered by their measurement, others by their neighbours with an honest spread."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from profiles.prediction.build_curves import build_curves
from profiles.prediction.curve_table import CurveTable
from profiles.prediction.kriging import combine, kriging_weights
from profiles.prediction.rungs import Rung

Array = NDArray[np.float64]
GRID: Array = np.exp2(np.arange(6.0, 13.0))
AXIS: Array = np.exp2(np.arange(4.0, 14.0))


def field(axis: Array, sites: Array) -> Array:
    """A smooth log utilisation."""
    n, k = np.log2(sites).T
    value: Array = (
        -1.0 + 0.1 * np.log2(axis) - 0.02 * (np.log2(axis) - 9.0) ** 2 + 0.05 * n + 0.03 * k + 0.02 * np.sin(n + k)
    )
    return value


def points(noise: float = 0.0, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Sites, axis, roofline and time of a full grid."""
    n, k, axis = (each.ravel() for each in np.meshgrid(GRID, GRID, AXIS, indexing="ij"))
    sites, roofline = np.stack([n, k], axis=1), axis * n * k / 1e12
    random = np.random.default_rng(seed)
    return sites, axis, roofline, roofline / np.exp(field(axis, sites) + noise * random.standard_normal(len(axis)))


def table(noise: float = 0.0) -> CurveTable:
    return build_curves(*points(noise))


def test_a_measured_shape_is_an_exact_hit() -> None:
    sites, axis, roofline, time_s = points()
    value, sigma, rung = build_curves(sites, axis, roofline, time_s).predict(axis, sites)
    np.testing.assert_allclose(roofline / np.exp(value), time_s, rtol=1e-12)
    assert set(rung.tolist()) == {int(Rung.EXACT)}
    assert np.all(sigma == sigma[0])


def test_between_two_points_of_a_curve_the_value_lies_between_them() -> None:
    sites = np.array([[1024.0, 1024.0]])
    value, _, rung = table().predict(np.array([3000.0]), sites)
    ends, _, _ = table().predict(np.array([2048.0, 4096.0]), np.repeat(sites, 2, axis=0))
    assert min(ends) <= value[0] <= max(ends)
    assert rung[0] == Rung.BRACKET


def test_an_unseen_site_is_kriged_close_to_a_smooth_field() -> None:
    sites = np.array([[1500.0, 700.0], [300.0, 3000.0]])
    axis = np.array([1024.0, 512.0])
    value, _, rung = table().predict(axis, sites)
    np.testing.assert_allclose(value, field(axis, sites), atol=0.01)
    assert rung.tolist() == [Rung.NEAREST, Rung.NEAREST]


def test_beyond_the_range_the_boundary_holds_and_the_spread_grows_with_every_octave() -> None:
    sites = np.array([[1024.0, 1024.0]] * 3)
    axis = AXIS[-1] * np.array([1.0, 2.0, 4.0])
    value, sigma, rung = table().predict(axis, sites)
    assert value[0] == value[1] == value[2]
    assert sigma[0] < sigma[1] < sigma[2]
    assert rung.tolist() == [Rung.EXACT, Rung.BOUNDARY, Rung.BOUNDARY]


def test_far_from_every_site_nothing_is_said() -> None:
    _, _, rung = table().predict(np.array([1024.0]), np.array([[2.0**20, 2.0**20]]))
    assert rung[0] == Rung.MISSING


def test_a_hole_takes_its_shape_from_the_neighbours_and_its_level_from_itself() -> None:
    sites, axis, roofline, time_s = points()
    one = (sites == [1024.0, 1024.0]).all(axis=1)
    # This site is 20 % slower than its neighbours everywhere; its point at 512 is missing.
    time_s = np.where(one, 1.2 * time_s, time_s)
    hole = one & (axis == 512.0)
    built = build_curves(sites[~hole], axis[~hole], roofline[~hole], time_s[~hole])
    value, _, rung = built.predict(axis[hole], sites[hole])
    assert float(roofline[hole][0] / np.exp(value[0])) == pytest.approx(float(time_s[hole][0]), rel=0.03)
    assert rung[0] == Rung.BRACKET


@pytest.mark.parametrize("held_out", ["sites", "points"])
def test_the_stated_interval_holds_for_held_out_points_about_four_times_in_five(held_out: str) -> None:
    sites, axis, roofline, time_s = points(noise=0.06)
    random = np.random.default_rng(1)
    names = sites[:, 0] * 1e6 + sites[:, 1]
    if held_out == "sites":
        chosen = random.choice(np.unique(names), 10, replace=False)
        out = np.isin(names, chosen)
    else:
        out = random.random(len(axis)) < 0.1
    built = build_curves(sites[~out], axis[~out], roofline[~out], time_s[~out])
    value, sigma, _ = built.predict(axis[out], sites[out])
    inside = np.abs(value - np.log(roofline[out] / time_s[out])) <= 1.2816 * sigma
    assert 0.70 <= inside.mean() <= 0.90


def test_one_point_is_enough_for_a_table() -> None:
    built = build_curves(np.array([[64.0, 64.0]]), np.array([128.0]), np.array([1e-6]), np.array([2e-6]))
    value, sigma, rung = built.predict(np.array([128.0, 256.0]), np.array([[64.0, 64.0]] * 2))
    np.testing.assert_allclose(np.exp(value), 0.5)
    assert rung.tolist() == [Rung.EXACT, Rung.BOUNDARY]
    assert sigma[1] > sigma[0]


def test_repeated_measurements_of_a_shape_count_by_their_median() -> None:
    sites = np.array([[64.0, 64.0]] * 3)
    built = build_curves(sites, np.full(3, 128.0), np.full(3, 1.0), np.array([2.0, 4.0, 100.0]))
    value, _, _ = built.predict(np.array([128.0]), sites[:1])
    assert np.exp(-value[0]) == pytest.approx(4.0)


def test_the_order_of_questions_does_not_change_the_answers() -> None:
    sites = np.array([[1500.0, 700.0], [300.0, 3000.0], [1024.0, 1024.0], [900.0, 900.0]])
    axis = np.full(4, 777.0)
    together, _, _ = table(0.05).predict(axis, sites)
    built = table(0.05)
    alone = [built.predict(axis[i : i + 1], sites[i : i + 1])[0][0] for i in (3, 1, 0, 2)]
    np.testing.assert_allclose(together[[3, 1, 0, 2]], alone, rtol=1e-12)


def test_kriging_weights_add_up_to_one_and_reproduce_a_constant() -> None:
    sites = np.random.default_rng(0).random((30, 2)) * 8
    queries = np.random.default_rng(1).random((5, 2)) * 8
    weights = kriging_weights(sites, queries)
    np.testing.assert_allclose(weights.weights.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(combine(weights, np.full((30, 3), 7.0)), 7.0, rtol=1e-9)


def test_a_site_left_out_has_no_say_in_its_own_value() -> None:
    sites = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    weights = kriging_weights(sites, sites, leave_out=np.arange(3))
    for row in range(3):
        assert row not in weights.sites[row]
