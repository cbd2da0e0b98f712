"""Least and most along the short second axis of a tall array: a few passes over its columns instead of one a row."""

from __future__ import annotations

from functools import reduce

import numpy as np

from solver.arrays import Array


def least_of_row(columns: Array) -> Array:
    """``columns.min(axis=1)``: [R, N] -> [R]."""
    least: Array = reduce(np.minimum, columns.T)
    return least


def most_of_row(columns: Array) -> Array:
    """``columns.max(axis=1)``: [R, N] -> [R]."""
    most: Array = reduce(np.maximum, columns.T)
    return most
