"""Tall arrays with a short second axis: its least and most in a few passes over columns, and rows picked as blocks."""

from __future__ import annotations

from functools import reduce

import numpy as np

from solver.arrays import Array, Ints


def least_of_row(columns: Array) -> Array:
    """``columns.min(axis=1)``: [R, N] -> [R]."""
    least: Array = reduce(np.minimum, columns.T)
    return least


def most_of_row(columns: Array) -> Array:
    """``columns.max(axis=1)``: [R, N] -> [R]."""
    most: Array = reduce(np.maximum, columns.T)
    return most


def rows_at(table: Array, at: Ints) -> Array:
    """``table[at]``: [R, N] or [R].

    NumPy copies a short row with ``take`` as one block, and with an index number by number, which takes ten times as
    long.
    """
    return table.take(at, axis=0)


def planes_at(table: Array, plane: Ints, at: Ints) -> Array:
    """``table[plane, at]``, as ``rows_at``: [K, A, N] -> [R, N], or [..., N] where the two broadcast."""
    planes, rows, width = table.shape
    return rows_at(table.reshape(planes * rows, width), plane * rows + at)
