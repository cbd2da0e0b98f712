"""Residuals are what a table without the measurement really says."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from profiles.prediction.build_curves import build_curves
from profiles.prediction.curve_table import SIGMA_EXACT, Z80
from profiles.prediction.kriging import LENGTH_OCTAVES, NUGGET
from profiles.prediction.profile import OperatorTable, TableOrigin
from profiles.prediction.residuals import Residuals, point_residuals, site_residuals, table_roofline_s
from profiles.prediction.roofline import Roofline

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
ROOF = Roofline(flops_per_s=1e15, bytes_per_s=3e12, width_bytes=2.0)
# The last site lies inside the box of the others, where a table without it does not clip.
SITES = np.array([[256.0, 512.0], [4096.0, 4096.0], [1024.0, 2048.0]])
AXIS = np.array([128.0, 512.0, 4096.0])
EFFICIENCY = np.array([[0.10, 0.31, 0.55], [0.20, 0.48, 0.71], [0.12, 0.35, 0.52]])
INNER = 2
ALL: Mask = np.ones(EFFICIENCY.shape, dtype=bool)


def without(row: int, column: int | slice) -> Mask:
    keep = ALL.copy()
    keep[row, column] = False
    return keep


def built(keep: Mask = ALL) -> OperatorTable:
    """The small table of the cells that are kept."""
    row, column = np.nonzero(keep)
    roofline_s = ROOF.matmul_s(AXIS[column], SITES[row, 0], SITES[row, 1])
    curves = build_curves(SITES[row], AXIS[column], roofline_s, roofline_s / EFFICIENCY[row, column])
    return OperatorTable(curves, ROOF, TableOrigin(operator="matmul", dtype="bf16"))


def asked(table: OperatorTable, row: int, column: int) -> tuple[float, float]:
    """Time and sigma of a cell."""
    roofline_s = ROOF.matmul_s(AXIS[[column]], SITES[[row], 0], SITES[[row], 1])
    told = table.predict(roofline_s, AXIS[[column]], SITES[[row]])
    return float(told.time_s[0]), float(told.sigma[0])


def cells(residuals: Residuals) -> dict[tuple[float, float, float], tuple[float, float, float]]:
    """(n, k, m) -> measured, predicted, sigma.  A table sorts its sites: cells are named by their sizes."""
    sites = np.unique(SITES, axis=0)
    return {
        (*sites[row].tolist(), float(AXIS[column])): (measured, predicted, sigma)
        for row, column, measured, predicted, sigma in zip(
            residuals.row,
            residuals.column,
            residuals.measured_s.tolist(),
            residuals.predicted_s.tolist(),
            residuals.sigma.tolist(),
            strict=True,
        )
    }


@pytest.mark.parametrize("column", range(3))
def test_a_left_out_site_is_what_a_table_built_without_it_says(column: int) -> None:
    measured, predicted, _ = cells(site_residuals(built()))[(*SITES[INNER].tolist(), AXIS[column])]
    roofline_s = float(ROOF.matmul_s(AXIS[column], *SITES[INNER]))
    assert measured == pytest.approx(roofline_s / EFFICIENCY[INNER, column], rel=1e-12)
    assert predicted == pytest.approx(asked(built(without(INNER, slice(None))), INNER, column)[0], rel=1e-12)


def test_a_left_out_site_is_the_kriging_of_the_others_worked_out_by_hand() -> None:
    places = np.log2(SITES)
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2)) * np.sqrt(3.0) / LENGTH_OCTAVES
    correlation = (1.0 + apart) * np.exp(-apart)
    others = [0, 1]
    system = np.ones((3, 3))
    system[:2, :2] = correlation[np.ix_(others, others)] + NUGGET * np.eye(2)
    system[2, 2] = 0.0
    weights = np.linalg.solve(system, np.array([*correlation[others, INNER], 1.0]))[:2]
    roofline_s = ROOF.matmul_s(AXIS, *SITES[INNER])
    expected_s = roofline_s / np.exp(weights @ np.log(EFFICIENCY[others]))
    found = cells(site_residuals(built()))
    predicted_s = [found[(*SITES[INNER].tolist(), axis)][1] for axis in AXIS.tolist()]
    np.testing.assert_allclose(predicted_s, expected_s, rtol=1e-12)


@pytest.mark.parametrize("row", range(3))
@pytest.mark.parametrize("column", range(3))
def test_a_left_out_point_is_what_a_table_built_without_it_says(row: int, column: int) -> None:
    _, predicted, sigma = cells(point_residuals(built()))[(*SITES[row].tolist(), AXIS[column])]
    expected, expected_sigma = asked(built(without(row, column)), row, column)
    assert predicted == pytest.approx(expected, rel=1e-12)
    assert sigma == pytest.approx(expected_sigma, rel=1e-12)


def test_a_hole_in_a_curve_has_no_residual_and_its_neighbours_do_without_it() -> None:
    keep = without(0, 1)
    table = built(keep)
    assert len(point_residuals(table).row) == len(site_residuals(table).row) == 8
    keep[0, 2] = False
    expected, _ = asked(built(keep), 0, 2)
    assert cells(point_residuals(table))[(*SITES[0].tolist(), AXIS[2])][1] == pytest.approx(expected, rel=1e-12)


def moved(axis: Array, efficiency: Array) -> OperatorTable:
    roofline_s = ROOF.moved_s(axis)
    curves = build_curves(np.ones((len(axis), 1)), axis, roofline_s, roofline_s / efficiency)
    return OperatorTable(curves, ROOF, TableOrigin(operator="norm", dtype="bf16"))


def test_a_curve_alone_is_told_by_its_neighbours_and_its_ends_by_nothing() -> None:
    axis, efficiency = np.array([1e6, 4e6, 64e6]), np.array([0.2, 0.5, 0.8])
    table = moved(axis, efficiency)
    assert site_residuals(table).summary() is None
    found = point_residuals(table)
    assert found.column.tolist() == [1]
    # 4e6 lies 2 of 6 octaves above 1e6.
    between = np.log(0.2) + (np.log(0.8) - np.log(0.2)) * 2.0 / 6.0
    assert found.predicted_s[0] == pytest.approx(float(ROOF.moved_s(axis)[1]) / np.exp(between), rel=1e-12)
    assert found.sigma[0] > SIGMA_EXACT


def test_one_point_has_no_residual() -> None:
    table = moved(np.array([1e6]), np.array([0.5]))
    assert point_residuals(table).summary() is None
    assert site_residuals(table).summary() is None


def test_nothing_is_said_about_a_site_beyond_reach() -> None:
    sites = np.array([[32.0, 32.0], [65536.0, 65536.0]])
    roofline_s = ROOF.matmul_s(np.array([512.0, 512.0]), *sites.T)
    curves = build_curves(sites, np.array([512.0, 512.0]), roofline_s, roofline_s * 2.0)
    table = OperatorTable(curves, ROOF, TableOrigin(operator="matmul", dtype="bf16"))
    assert site_residuals(table).summary() is None


def test_the_roofline_of_a_table_is_that_of_its_shapes() -> None:
    sites = np.array([[1.0, 8.0, 2.0], [4.0, 32.0, 8.0]])
    axis = np.array([1024.0, 1024.0])
    roofline_s = ROOF.attention_s(sites[:, 0], axis, sites[:, 1], sites[:, 2], 128)
    curves = build_curves(sites, axis, roofline_s, roofline_s * 2.0)
    table = OperatorTable(curves, ROOF, TableOrigin(operator="attention", dtype="bf16", variant="128"))
    np.testing.assert_allclose(table_roofline_s(table)[:, 0], roofline_s, rtol=1e-12)


def test_a_summary_counts_what_lies_inside() -> None:
    place = np.zeros(4, dtype=np.int64)
    measured = np.ones(4)
    predicted = np.array([1.0, 1.1, 1.5, 0.5])
    found = Residuals(place, place, measured, predicted, np.full(4, np.log(1.2) / Z80)).summary()
    assert found is not None
    assert (found.num_points, found.coverage) == (4, 0.5)
    assert found.median == pytest.approx(0.3)
    assert found.p90 == pytest.approx(0.5)
