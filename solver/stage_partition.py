"""How are items in a line dealt to stages, exactly?

Variables    c_r   items on stage r (r = 0 .. S-1), consecutive; a_r = c_0 + .. + c_{r-1} is where stage r starts.
Objective    minimise  F( sum_r add[r, a_r, c_r],  max_r peak[r, a_r, c_r],  max_r tail1[..],  max_r tail2[..],
                          sum_r more_1[r, a_r, c_r], sum_r more_2[..], ... )
             for any F that never falls when an argument grows; ``more`` may be empty.
Constraints  (1) sum_r c_r = L                                          ``_finish_sum``
             (2) low <= c_r <= high                                     shape of the tables
             (3) feasible[r, a_r, c_r]: an infinite ``add`` forbids it  ``_extend``

Method: forward dynamic programming over (stage, start) with Pareto labels of all these values: a label that is no
better in any of them is dropped (``_pareto``), which keeps an optimum because F is monotone.  With a ``cutoff``,
``_limits`` encloses the largest peak and the largest sum that can still beat it; options and labels beyond
are dropped, and so are labels that do not beat it with the least of each value that is still to come
(``_Rest``).  Exact, or ``TooManyLabels``: their number may double with every further sum of the objective.

Shape letters: S stages, L items, A = L + 1 starts, C = high - low + 1 counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import add as add_up
from operator import le as no_more

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[..., Array]
"""F of the module docstring, element by element over arrays of one length."""
Label = tuple[float, float, float, float, tuple[float, ...], tuple[int, ...]]

GRID = 64
MANY_LABELS = 64
"""Labels from which comparing them as one table pays for making it."""
ROUNDING = 1e-12
"""Relative slack of the limits: the same stages summed in another order must not exceed them."""
REFINEMENTS = 2
"""A limit is enclosed by this many grids of this many points; what is left is kept, so fewer only cost time."""


class TooManyLabels(Exception):
    """The labels of a program are more than it may have: nothing is said about its optimum."""


@dataclass(frozen=True, slots=True)
class PartitionTables:
    """Costs of giving ``low + c`` items that start at ``a`` to stage ``r``: float64[S, A, C]; inf = forbidden."""

    add: Array
    peak: Array
    tail1: Array
    tail2: Array
    low: int
    more: tuple[Array, ...] = ()
    """Further sums of the objective, finite wherever ``add`` is."""

    @property
    def num_stages(self) -> int:
        """S."""
        return int(self.add.shape[0])

    @property
    def num_items(self) -> int:
        """L."""
        return int(self.add.shape[1]) - 1


@dataclass(frozen=True, slots=True)
class Partition:
    """An optimal dealing: items of each stage, and the value of F."""

    counts: tuple[int, ...]
    objective: float


def partition(
    tables: PartitionTables, objective: Objective, cutoff: float = float("inf"), most_labels: float = float("inf")
) -> Partition | None:
    """Best dealing with objective below ``cutoff``; None when there is none.

    Exact.  Raises ``TooManyLabels`` once the undominated labels of all stages are more than ``most_labels``.
    """
    finish = _finish_sum(tables.add, tables.low)
    if not np.isfinite(finish[0, 0]):
        return None
    peak_limit, sum_limit = _limits(tables, objective, cutoff, float(finish[0, 0]))
    if peak_limit < 0:
        return None
    add = np.where(tables.peak <= peak_limit, tables.add, np.inf)
    finish = _finish_sum(add, tables.low)
    rest = _Rest(tables, add, finish, objective, cutoff) if np.isfinite(cutoff) else None
    labels: dict[int, list[Label]] = {0: [(0.0, 0.0, 0.0, 0.0, (0.0,) * len(tables.more), ())]}
    count = 0
    for stage in range(tables.num_stages):
        grown = _extend(tables, add, stage, labels, finish, sum_limit)
        if rest is not None:
            grown = rest.hopeful(stage + 1, grown)
        labels = {stop: _pareto(found) for stop, found in grown.items()}
        if not labels:
            return None
        count += sum(map(len, labels.values()))
        if count > most_labels:
            raise TooManyLabels
    final = labels.get(tables.num_items, [])
    if not final:
        return None
    *four, sums, counts = zip(*final, strict=True)
    values = objective(*(np.array(column) for column in four), *np.array(sums).reshape(len(final), -1).T)
    best = int(np.argmin(values))
    return Partition(counts=counts[best], objective=float(values[best])) if values[best] < cutoff else None


def _limits(tables: PartitionTables, objective: Objective, cutoff: float, least_sum: float) -> tuple[float, float]:
    """Largest peak and largest sum that can still beat ``cutoff``; peak -1 when nothing can."""
    if not np.isfinite(cutoff):
        return float("inf"), float("inf")
    finite = np.isfinite(tables.add)
    least_peak, *tails = (
        float(_finish_largest(np.where(finite, each, np.inf), tables.low)[0, 0])
        for each in (tables.peak, tables.tail1, tables.tail2)
    )
    most_peak = float(tables.peak[finite].max())
    most_sum = float(np.where(finite, tables.add, -np.inf).max(axis=(1, 2)).sum())
    zero = np.zeros(GRID)
    more = [zero + float(_finish_sum(np.where(finite, each, np.inf), tables.low)[0, 0]) for each in tables.more]

    def by_peak(peaks: Array) -> Array:
        return objective(zero + least_sum, peaks, zero + tails[0], zero + tails[1], *more)

    def by_sum(sums: Array) -> Array:
        return objective(sums, zero + least_peak, zero + tails[0], zero + tails[1], *more)

    if by_peak(zero + least_peak)[0] >= cutoff:
        return -1.0, -1.0
    peak, total = _largest(by_peak, cutoff, least_peak, most_peak), _largest(by_sum, cutoff, least_sum, most_sum)
    return peak * (1 + ROUNDING), total * (1 + ROUNDING)


def _largest(value: Callable[[Array], Array], cutoff: float, low: float, high: float) -> float:
    """Upper end of where a non-decreasing function stays below ``cutoff``, rounded outwards; low is known to."""
    if high <= low:
        return low
    for _ in range(REFINEMENTS):
        points = np.linspace(low, high, GRID)
        below = np.flatnonzero(value(points) < cutoff)
        last = int(below[-1]) if len(below) else 0
        if last == GRID - 1:
            return high
        low, high = float(points[last]), float(points[last + 1])
    return high


def _extend(
    tables: PartitionTables, add: Array, stage: int, labels: dict[int, list[Label]], finish: Array, sum_limit: float
) -> dict[int, list[Label]]:
    """All labels after ``stage``, by where the next stage starts."""
    grown: dict[int, list[Label]] = {}
    for start, here in labels.items():
        row = add[stage, start]
        for column in np.flatnonzero(np.isfinite(row)).tolist():
            stop = start + tables.low + column
            if stop > tables.num_items or not np.isfinite(finish[stage + 1, stop]):
                continue
            a, p = float(row[column]), float(tables.peak[stage, start, column])
            t1, t2 = float(tables.tail1[stage, start, column]), float(tables.tail2[stage, start, column])
            most = sum_limit - float(finish[stage + 1, stop])
            further = [float(each[stage, start, column]) for each in tables.more]
            found = [
                (
                    *(total + a, max(top, p), max(end1, t1), max(end2, t2)),
                    tuple(map(add_up, sums, further)) if sums else (),
                    (*counts, stop - start),
                )
                for total, top, end1, end2, sums, counts in here
                if total + a <= most
            ]
            if found:
                grown.setdefault(stop, []).extend(found)
    return grown


class _Rest:
    """What every value still grows by or to at least, after each (stage, start)."""

    def __init__(self, tables: PartitionTables, add: Array, finish: Array, objective: Objective, cutoff: float) -> None:
        self._objective, self._cutoff = objective, cutoff
        possible = np.isfinite(add)
        self._sums = [finish, *(_finish_sum(np.where(possible, each, np.inf), tables.low) for each in tables.more)]
        self._largest = [
            _finish_largest(np.where(possible, each, np.inf), tables.low)
            for each in (tables.peak, tables.tail1, tables.tail2)
        ]

    def hopeful(self, stage: int, grown: dict[int, list[Label]]) -> dict[int, list[Label]]:
        """The labels in front of ``stage`` that some completion could bring below the cutoff."""
        every = [(stop, label) for stop, found in grown.items() for label in found]
        if not every:
            return grown
        stops = np.array([stop for stop, _ in every])
        totals, *largest = (np.array([label[at] for _, label in every]) for at in range(4))
        more = np.array([label[4] for _, label in every]).reshape(len(every), -1).T
        sums = [each + rest[stage, stops] for each, rest in zip((totals, *more), self._sums, strict=True)]
        tops = [np.maximum(each, rest[stage, stops]) for each, rest in zip(largest, self._largest, strict=True)]
        least = self._objective(sums[0], *tops, *sums[1:])
        kept: dict[int, list[Label]] = {}
        for at in np.flatnonzero(least * (1 - ROUNDING) < self._cutoff).tolist():
            stop, label = every[at]
            kept.setdefault(stop, []).append(label)
        return kept


def _pareto(labels: list[Label]) -> list[Label]:
    """Labels that no other one beats or equals in all values; ties keep the first in sorted order."""
    if len(labels) == 1:
        return labels
    ordered, kept = sorted(labels), list[Label]()
    if len(ordered) > MANY_LABELS:
        values = np.array([(*label[1:4], *label[4]) for label in ordered])
        best, number = np.empty_like(values), 0
        for label, value in zip(ordered, values, strict=True):
            if not (best[:number] <= value).all(axis=1).any():
                best[number] = value
                number += 1
                kept.append(label)
        return kept
    for label in ordered:
        if not any(
            k[1] <= label[1] and k[2] <= label[2] and k[3] <= label[3] and all(map(no_more, k[4], label[4]))
            for k in kept
        ):
            kept.append(label)
    return kept


def _finish_sum(add: Array, low: int) -> Array:
    """Smallest ``add`` still to come after each (stage, start): [S + 1, A]; inf = cannot be finished."""
    return _finish(add, low, np.add)


def _finish_largest(values: Array, low: int) -> Array:
    """Least maximum of ``values`` still to come after each (stage, start): [S + 1, A]; 0 at the end."""
    return _finish(values, low, np.maximum)


def _finish(values: Array, low: int, joined: np.ufunc) -> Array:
    """Least of what the stages still to come make, joined with one another, after each (stage, start): [S + 1, A]."""
    stages, items, width = values.shape[0], values.shape[1] - 1, values.shape[2]
    rest = np.full((stages + 1, items + 1), np.inf)
    rest[stages, items] = 0.0
    for stage in range(stages - 1, -1, -1):
        for column in range(width):
            step = low + column
            if step > items:
                break
            via = joined(values[stage, : items + 1 - step, column], rest[stage + 1, step:])
            rest[stage, : items + 1 - step] = np.minimum(rest[stage, : items + 1 - step], via)
    return rest
