"""The least cost of the stages that are still missing: a relaxation without order, hops and late work.

For a number of units of each pool and a number of items, the least sum of stage times, with no stage of a pace above
``cap``:

    R_p[u, l] = min( R_p[u - 1, l],  min over options o of p and counts c of  R_p[u - n_o, l - c] + best[o, c] )
    rest[u, l] = min over l_1 + .. + l_P = l of  sum_p R_p[u_p, l_p]

``best[o, c]`` is the least time of ``c`` items on option ``o`` over policies, spans and all positions that a missing
stage can have.  Any completion is such a sum, so ``rest`` never exceeds it.  Infinite = no completion exists.
"""

from __future__ import annotations

import numpy as np

from solver.arrays import Array, Ints
from solver.stage_assignment.tables import AssignmentTables

CHUNK = 100_000
"""Rows that are compared at once."""


def least_by_count(tables: AssignmentTables, values: Array) -> Array:
    """Least value of every option, position (this one or further from the end) and count: [O, E, C]; inf = none."""
    by_class = values.min(axis=1)  # [O, E, Z]
    counts = tables.span_class.shape[1]
    best = np.full((*by_class.shape[:2], counts), np.inf)
    for column in range(counts):
        classes = np.unique(tables.span_class[:, column])
        classes = classes[classes >= 0]
        if len(classes):
            best[:, :, column] = by_class[:, :, classes].min(axis=2)
    backwards: Array = np.minimum.accumulate(best[:, ::-1, :], axis=1)[:, ::-1, :]
    return backwards


def has_room(tables: AssignmentTables, best_pace: Array, cap: float) -> bool:
    """Whether all units together could hold all items in stages up to ``cap``: most items of each pool, added."""
    counts = np.arange(1, best_pace.shape[2] + 1)
    held = np.where(best_pace[:, 0, :] <= cap, counts, 0).max(axis=1)
    room = 0
    for pool, units in enumerate(tables.pool_units.tolist()):
        most = np.zeros(units + 1, dtype=np.int64)
        for unit in range(1, units + 1):
            most[unit] = most[unit - 1]
            for option in np.flatnonzero((tables.option_pool == pool) & (tables.option_units <= unit)).tolist():
                most[unit] = max(most[unit], most[unit - tables.option_units[option]] + held[option])
        room += int(most[units])
    return room >= tables.num_items


def lowest_peak(tables: AssignmentTables, best_pace: Array) -> float | None:
    """The smallest peak of an entry that leaves room for all items; None when none does."""
    peaks = np.unique(tables.pace[np.isfinite(tables.pace)])
    low, high = 0, len(peaks)
    while low < high:
        middle = (low + high) // 2
        enough = has_room(tables, best_pace, float(peaks[middle]))
        low, high = (low, middle) if enough else (middle + 1, high)
    return float(peaks[low]) if low < len(peaks) else None


class Rest:
    """Lower bounds of completions under one cap on the pace of stages."""

    def __init__(self, tables: AssignmentTables, best: Array, best_pace: Array, cap: float) -> None:
        self.tables = tables
        self.best = np.where(best_pace <= cap, best, np.inf)
        self._pools: dict[int, list[Array]] = {}
        self._joined: dict[int, dict[tuple[int, ...], Array]] = {}

    def bound(self, items: Ints, spare: Ints, from_end: int) -> Array:
        """Least sum of times for ``items`` [n] on ``spare`` [n, P] units, by stages ``from_end`` or further: [n]."""
        bracket = self._bracket(from_end)
        alone = self._alone(bracket)
        last = alone[-1][spare[:, -1]]
        if len(alone) == 1:
            single: Array = last[np.arange(len(items)), items]
            return single
        others = self._others(bracket, spare[:, :-1])
        here = np.arange(last.shape[1])[None, :]
        found = np.empty(len(items))
        for start in range(0, len(items), CHUNK):
            at = slice(start, start + CHUNK)
            mirrored = np.take_along_axis(last[at], np.maximum(items[at, None] - here, 0), axis=1)
            found[at] = np.where(here <= items[at, None], others[at] + mirrored, np.inf).min(axis=1)
        return found

    def whole(self) -> float:
        """Least sum of times for all items on all units."""
        tables = self.tables
        return float(self.bound(np.array([tables.num_items]), tables.pool_units[None, :], 1)[0])

    def _bracket(self, from_end: int) -> int:
        """A position whose least times are a bound here: the largest power of two, or an earlier one as good."""
        bracket = self.tables.position(1 << (from_end.bit_length() - 1))
        while bracket and np.array_equal(self.best[:, bracket], self.best[:, (bracket - 1) // 2]):
            bracket = (bracket - 1) // 2
        return bracket

    def _alone(self, position: int) -> list[Array]:
        if position not in self._pools:
            self._pools[position] = [self._pool(pool, position) for pool in range(len(self.tables.pool_units))]
        return self._pools[position]

    def _others(self, position: int, spare: Ints) -> Array:
        """Least sums on all pools but the last one, for the units that are asked for: [n, items + 1]."""
        alone = self._alone(position)
        if spare.shape[1] == 1:
            rows: Array = alone[0][spare[:, 0]]
            return rows
        distinct, of = np.unique(spare, axis=0, return_inverse=True)
        known = self._joined.setdefault(position, {})
        missing = [tuple(units) for units in distinct.tolist() if tuple(units) not in known]
        if missing:
            wanted = np.array(missing)
            joined = alone[0][wanted[:, 0]]
            for pool in range(1, wanted.shape[1]):
                joined = _join(joined, alone[pool][wanted[:, pool]])
            known.update(zip(missing, joined, strict=True))
        found: Array = np.stack([known[tuple(units)] for units in distinct.tolist()])[of.reshape(-1)]
        return found

    def _pool(self, pool: int, position: int) -> Array:
        """R_p: [units + 1, items + 1]."""
        tables = self.tables
        units, items = int(tables.pool_units[pool]), tables.num_items
        table = np.full((units + 1, items + 1), np.inf)
        table[:, 0] = 0.0
        ways = [self._ways(option, position) for option in np.flatnonzero(tables.option_pool == pool).tolist()]
        for held in range(1, units + 1):
            row = table[held - 1].copy()
            for size, times, source in ways:
                if size <= held and len(times):
                    grown = table[held - size][source] + times
                    np.minimum(row, grown.min(axis=0), out=row)
            table[held] = row
        return table

    def _ways(self, option: int, position: int) -> tuple[int, Array, Ints]:
        """Units of an option, and what each of its counts costs and leaves, for every number of items: [C, L + 1]."""
        times = self.best[option, position]
        some = np.flatnonzero(np.isfinite(times))
        source = np.arange(self.tables.num_items + 1)[None, :] - (some + 1)[:, None]
        cost = np.where(source >= 0, times[some][:, None], np.inf)
        return int(self.tables.option_units[option]), cost, np.maximum(source, 0)


def _join(first: Array, second: Array) -> Array:
    """Least sums over two groups of pools together, row by row: [n, items + 1]."""
    joined = np.full(first.shape, np.inf)
    for count in range(first.shape[1]):
        part = first[:, count : count + 1] + second[:, : second.shape[1] - count]
        np.minimum(joined[:, count:], part, out=joined[:, count:])
    return joined
