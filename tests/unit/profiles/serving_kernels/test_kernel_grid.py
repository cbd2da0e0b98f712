"""Grids of efficiencies: gaps, what lies between, what is left out when they ship."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profiles.arrays import Array
from profiles.serving_kernels import shipped
from profiles.serving_kernels.build import thinned
from profiles.serving_kernels.grid import Grid, Table, distinct, tabulated, without_gaps

SIZES: Array = np.exp2(np.arange(10))


def test_gaps_between_are_interpolated_and_ends_kept() -> None:
    nan = np.nan
    values = np.array([[[nan, 1.0, nan, 3.0, nan], [nan] * 5, [0.0] * 5]])
    filled = without_gaps(values, (SIZES[:3], SIZES[:5]))
    assert filled[0, 0].tolist() == [1.0, 1.0, 2.0, 3.0, 3.0]
    assert filled[0, 1].tolist() == [0.5, 0.5, 1.0, 1.5, 1.5]


def test_rows_become_a_table() -> None:
    shapes = np.array([[4.0], [2.0], [4.0]])
    table = tabulated(("heads",), shapes, np.array([[8.0], [8.0], [16.0]]), np.array([0.4, 0.2, 0.6]))
    assert table.shapes.tolist() == [[2.0], [4.0]]
    assert table.values.tolist() == [[0.2, 0.2], [0.4, 0.6]]


def test_numbers_and_arrays_agree() -> None:
    random = np.random.default_rng(5)
    grid = Grid((np.log(SIZES), np.log([7.0]), np.log(SIZES[:3])), random.normal(size=(10, 1, 3)))
    for sizes in random.uniform(0.1, 2000.0, (40, 3)):
        assert grid.factor(*sizes.tolist()) == pytest.approx(
            float(grid.factor(*(np.array([size]) for size in sizes))[0])
        )


def test_shapes_between_are_blended() -> None:
    table = Table(("heads",), np.array([[1.0], [15.0]]), (SIZES,), np.stack([np.zeros(10), np.ones(10)]))
    assert (table.blended({"heads": 15.0}).values == 1.0).all()
    assert table.blended({"heads": 2 * 2**1.5 - 1}).values == pytest.approx(np.full(10, 0.5))


def test_distinct_rows_rise_as_numpys_do() -> None:
    rows = np.random.default_rng(1).integers(0, 4, (200, 3)).astype(float)
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    first, which = distinct(rows)
    assert np.array_equal(rows[first], expected)
    assert np.array_equal(which, inverse.ravel())


def test_what_others_give_is_left_out() -> None:
    corner = np.abs(np.arange(10.0) - 6) * 0.3
    shapes = np.array([[2.0**power] for power in range(8)])
    table = Table(("heads",), shapes, (SIZES,), np.tile(corner, (8, 1)))
    small = thinned(table)
    assert small.axes[0].tolist() == [1.0, 64.0, 512.0]
    assert len(small.shapes) < 8
    for shape in shapes[:, 0]:
        assert small.blended({"heads": shape}).factor(SIZES) == pytest.approx(np.exp(corner), rel=0.001)


def test_tables_come_back_from_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).normal(size=(3, 4, 10)) * 3
    table = Table(("heads", "window"), np.array([[1, 0], [2.5, 0], [8, 128.0]]), (SIZES[:4], SIZES), values)
    shipped.write(tmp_path / "here" / "vllm.npz", {"decode/bf16": table})
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    shipped.table.cache_clear()
    read = shipped.table("here", "vllm", "decode/bf16")
    assert read is not None
    assert read.features == table.features
    assert np.array_equal(read.shapes, table.shapes)
    assert np.abs(read.values - values).max() <= shipped.STEP / 2 + 1e-9
    assert shipped.table("here", "vllm", "decode/fp8") is None
    assert shipped.table("here", "sglang", "decode/bf16") is None
