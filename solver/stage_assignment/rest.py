"""How little can the stages that are still missing cost?  A relaxation without order, hops and late work.

For a number of units of each pool and a number of items, the least sum of stage times, with no stage above ``cap``:

    R_p[u, l] = min( R_p[u - 1, l],  min over options o of p and counts c of  R_p[u - n_o, l - c] + best[o, c] )
    rest[u, l] = min over l_1 + .. + l_P = l of  sum_p R_p[u_p, l_p]

``best[o, c]`` is the least time of ``c`` items on option ``o`` over policies, spans and all positions that a missing
stage can have.  Any completion is such a sum, so ``rest`` never exceeds it.  Infinite = no completion exists.
"""

from __future__ import annotations

import numpy as np

from solver.stage_assignment.tables import Array, AssignmentTables, Ints

MOST_GROUP_ROWS = 2_000_000
"""Entries up to which pools are joined into one table; the rest is joined label by label."""
CHUNK = 200_000


def best_times(tables: AssignmentTables) -> Array:
    """Least time of every option, position (this one or further from the end) and count: [O, E, C]; inf = none."""
    by_class = tables.time.min(axis=1)  # [O, E, Z]
    counts = tables.span_class.shape[1]
    best = np.full((*by_class.shape[:2], counts), np.inf)
    for column in range(counts):
        classes = np.unique(tables.span_class[:, column])
        classes = classes[classes >= 0]
        if len(classes):
            best[:, :, column] = by_class[:, :, classes].min(axis=2)
    backwards: Array = np.minimum.accumulate(best[:, ::-1, :], axis=1)[:, ::-1, :]
    return backwards


class Rest:
    """Lower bounds of completions under one cap on stage times."""

    def __init__(self, tables: AssignmentTables, best: Array, cap: float) -> None:
        self.tables = tables
        self.best = np.where(best <= cap, best, np.inf)
        self._groups: dict[int, tuple[list[int], Array, list[int], Array | None]] = {}

    def bound(self, items: Ints, spare: Ints, from_end: int) -> Array:
        """Least sum of times for ``items`` [n] on ``spare`` [n, P] units, by stages ``from_end`` or further: [n]."""
        left, first, right, second = self._joined(from_end)
        found = np.empty(len(items))
        for start in range(0, len(items), CHUNK):
            at = slice(start, start + CHUNK)
            rows = first[tuple(spare[at, pool] for pool in left)]
            count = items[at]
            if second is None:
                found[at] = rows[np.arange(len(count)), count]
                continue
            others = second[tuple(spare[at, pool] for pool in right)]
            here = np.arange(rows.shape[1])[None, :]
            mirrored = np.take_along_axis(others, np.maximum(count[:, None] - here, 0), axis=1)
            found[at] = np.where(here <= count[:, None], rows + mirrored, np.inf).min(axis=1)
        return found

    def whole(self) -> float:
        """Least sum of times for all items on all units."""
        tables = self.tables
        return float(self.bound(np.array([tables.num_items]), tables.pool_units[None, :], 1)[0])

    def _joined(self, from_end: int) -> tuple[list[int], Array, list[int], Array | None]:
        """Pools in two groups, each with its table of least sums [units .., items]."""
        # Brackets keep the number of tables small: the largest power of two up to the position is still a bound.
        bracket = 1 << (from_end.bit_length() - 1)
        if bracket not in self._groups:
            position = self.tables.position(bracket)
            alone = [self._pool(pool, position) for pool in range(len(self.tables.pool_units))]
            left, first, used = [0], alone[0], 1
            while used < len(alone) and (
                first.size * alone[used].shape[0] <= MOST_GROUP_ROWS and (used + 1 < len(alone) or len(alone) == 2)
            ):
                first = _join(first, alone[used])
                left.append(used)
                used += 1
            right, second = list(range(used, len(alone))), None
            for pool in right:
                second = alone[pool] if second is None else _join(second, alone[pool])
            self._groups[bracket] = (left, first, right, second)
        return self._groups[bracket]

    def _pool(self, pool: int, position: int) -> Array:
        """R_p: [units + 1, items + 1]."""
        tables = self.tables
        units, items = int(tables.pool_units[pool]), tables.num_items
        options = np.flatnonzero(tables.option_pool == pool)
        counts = np.arange(1, self.best.shape[2] + 1)
        source = np.arange(items + 1)[None, :] - counts[:, None]
        table = np.full((units + 1, items + 1), np.inf)
        table[:, 0] = 0.0
        for held in range(1, units + 1):
            row = table[held - 1].copy()
            for option in options.tolist():
                size = int(tables.option_units[option])
                times = self.best[option, position]
                some = np.isfinite(times)
                if size > held or not some.any():
                    continue
                before = table[held - size][np.maximum(source[some], 0)]
                grown = np.where(source[some] >= 0, before + times[some][:, None], np.inf).min(axis=0)
                np.minimum(row, grown, out=row)
            table[held] = row
        return table


def _join(first: Array, second: Array) -> Array:
    """Least sums over two groups of pools together: [units of the first .., units of the second, items]."""
    items = first.shape[-1]
    flat = first.reshape(-1, 1, items)
    joined = np.full((flat.shape[0], second.shape[0], items), np.inf)
    for count in range(items):
        part = flat[:, :, count : count + 1] + second[None, :, : items - count]
        np.minimum(joined[:, :, count:], part, out=joined[:, :, count:])
    return joined.reshape(*first.shape[:-1], second.shape[0], items)
