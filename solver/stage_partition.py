"""The exact partition of a line of items into stages.

Variables    c_r   items on stage r (r = 0 .. S-1), consecutive; a_r = c_0 + .. + c_{r-1} is where stage r starts.
Objective    minimise  F( sum_r add[r, a_r, c_r],  max_r peak[r, a_r, c_r],  max_r tail1[..],  max_r tail2[..],
                          sum_r more_1[r, a_r, c_r], sum_r more_2[..], ... )
             for any F that never falls when an argument grows; ``more`` may be empty.
Constraints  (1) sum_r c_r = L                                          ``_finish_sums``
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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solver.arrays import Array, Ints
from solver.partition_kernels import beaten, finish, options

Objective = Callable[..., Array]
"""F of the module docstring, element by element over arrays of one length."""

GRID = 64
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

    def in_order(self) -> PartitionTables:
        """The same, every table in C order."""
        return replace(
            self,
            add=np.ascontiguousarray(self.add),
            peak=np.ascontiguousarray(self.peak),
            tail1=np.ascontiguousarray(self.tail1),
            tail2=np.ascontiguousarray(self.tail2),
            more=tuple(map(np.ascontiguousarray, self.more)),
        )

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
    tables = tables.in_order()
    least_sum, *least_more = _finish_sums(tables, tables.add)[:, 0, 0].tolist()
    if not np.isfinite(least_sum):
        return None
    peak_limit, sum_limit = _limits(tables, objective, cutoff, (least_sum, *least_more))
    if peak_limit < 0:
        return None
    add = np.where(tables.peak <= peak_limit, tables.add, np.inf)
    sums = _finish_sums(tables, add)
    rest = _Rest(tables, add, sums, objective, cutoff) if np.isfinite(cutoff) else None
    none = np.zeros(1, dtype=np.int64)
    labels = _Labels(none, np.zeros((4 + len(tables.more), 1)), none, none, none)
    stages, count = list[_Labels](), 0
    for stage in range(tables.num_stages):
        labels = _extend(tables, add, stage, labels, sums[0], sum_limit)
        if rest is not None:
            labels = rest.hopeful(stage + 1, labels)
        if len(labels.stop) == 0:
            return None
        labels = _pareto(labels)
        stages.append(labels)
        count += len(labels.stop)
        if count > most_labels:
            raise TooManyLabels
    # Whoever could not give every item away had no completion.
    values = objective(*labels.values)
    best = int(np.argmin(values))
    if not values[best] < cutoff:
        return None
    return Partition(counts=_counts(stages, best, tables.low), objective=float(values[best]))


def _counts(stages: list[_Labels], position: int, low: int) -> tuple[int, ...]:
    """Items of each stage on the way to one label of the last stage."""
    counts = []
    for labels in reversed(stages):
        counts.append(low + int(labels.column[position]))
        position = int(labels.parent[position])
    return tuple(reversed(counts))


def _limits(
    tables: PartitionTables, objective: Objective, cutoff: float, least_sums: tuple[float, ...]
) -> tuple[float, float]:
    """Largest peak and largest sum that can still beat ``cutoff``; peak -1 when nothing can.

    ``least_sums``: what each sum comes to at least.
    """
    if not np.isfinite(cutoff):
        return float("inf"), float("inf")
    finite = np.isfinite(tables.add)
    least_sum, *further = least_sums
    least_peak, *tails = _finish_largest(tables, tables.add)[:, 0, 0].tolist()
    most_peak = float(tables.peak[finite].max())
    most_sum = float(np.where(finite, tables.add, -np.inf).max(axis=(1, 2)).sum())
    zero = np.zeros(GRID)
    more = [zero + each for each in further]

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


@dataclass(frozen=True, slots=True)
class _Labels:
    """Labels of one stage: where the next one starts [R], the values [4 + M, R], and where each came from."""

    stop: Ints
    values: Array
    """Sum, largest peak and tails, further sums."""
    parent: Ints
    """Position among the labels of the stage before."""
    column: Ints
    """Items of the stage, less ``low``."""
    rank: Ints
    """Place of the items of all stages so far in lexicographic order."""

    def take(self, at: Ints) -> _Labels:
        """Some of them."""
        return _Labels(self.stop[at], self.values.take(at, axis=1), self.parent[at], self.column[at], self.rank[at])


def _extend(tables: PartitionTables, add: Array, stage: int, labels: _Labels, rest: Array, limit: float) -> _Labels:
    """All labels after ``stage``; ``rest`` [S + 1, A]: the sum still to come; ``limit``: largest sum."""
    width = add.shape[2]
    parent, column, cell = np.empty((3, len(labels.stop) * width), dtype=np.int64)
    total, known = np.empty(len(parent)), (labels.stop, np.ascontiguousarray(labels.values[0]))
    count = options(add[stage], rest[stage + 1], tables.low, limit, *known, parent, column, cell, total)
    parent, column, cell = parent[:count], column[:count], cell[:count]
    values = labels.values.take(parent, axis=1)
    values[0] = total[:count]
    for place, table in enumerate((tables.peak, tables.tail1, tables.tail2), start=1):
        np.maximum(values[place], table[stage].ravel().take(cell), out=values[place])
    for place, table in enumerate(tables.more, start=4):
        values[place] += table[stage].ravel().take(cell)
    # The items of two labels differ, so that their order has no ties.
    rank = labels.rank[parent] * width + column
    return _Labels(labels.stop[parent] + tables.low + column, values, parent, column, rank)


class _Rest:
    """What every value still grows by or to at least, after each (stage, start)."""

    def __init__(self, tables: PartitionTables, add: Array, sums: Array, objective: Objective, cutoff: float) -> None:
        self._objective, self._cutoff = objective, cutoff
        self._sums, self._largest = sums, _finish_largest(tables, add)

    def hopeful(self, stage: int, labels: _Labels) -> _Labels:
        """The labels in front of ``stage`` that some completion could bring below the cutoff."""
        sums, tops = (each[:, stage].take(labels.stop, axis=1) for each in (self._sums, self._largest))
        total, *more = sums + np.concatenate([labels.values[:1], labels.values[4:]])
        least = self._objective(total, *np.maximum(labels.values[1:4], tops), *more)
        return labels.take(np.flatnonzero(least * (1 - ROUNDING) < self._cutoff))


def _pareto(labels: _Labels) -> _Labels:
    """Labels that no other one of their start beats or equals in all values; of equals the first by their items.

    Ascending in start, then in the values, then in the items.
    """
    labels = labels.take(np.lexsort((labels.rank, *labels.values[::-1], labels.stop)))
    out = np.empty(len(labels.stop), dtype=np.bool_)
    beaten(labels.stop, np.ascontiguousarray(labels.values[1:].T), out)
    kept = labels.take(np.flatnonzero(~out))
    rank = np.empty_like(kept.rank)
    rank[np.argsort(kept.rank)] = np.arange(len(rank))
    return replace(kept, rank=rank)


def _finish_sums(tables: PartitionTables, add: Array) -> Array:
    """Smallest sums still to come after each (stage, start), each for itself: [1 + M, S + 1, A].

    Infinite where it cannot be finished.  Where ``add`` is infinite, nothing can be given.
    """
    return _finish(add, (add, *tables.more), tables.low, sums=True)


def _finish_largest(tables: PartitionTables, add: Array) -> Array:
    """Least maxima of the peak and the tails still to come after each (stage, start): [3, S + 1, A]; 0 at the end."""
    return _finish(add, (tables.peak, tables.tail1, tables.tail2), tables.low, sums=False)


def _finish(add: Array, tables: Sequence[Array], low: int, *, sums: bool) -> Array:
    """Least of what the stages still to come make, summed or the largest: [K, S + 1, A] for K tables."""
    stages, starts, _ = add.shape
    rest = np.empty((len(tables), stages + 1, starts))
    for place, table in enumerate(tables):
        finish(add, table, low, int(sums), rest[place])
    return rest
