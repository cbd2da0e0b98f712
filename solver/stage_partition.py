"""How are items in a line dealt to stages, exactly?

Variables    c_r   items on stage r (r = 0 .. S-1), consecutive; a_r = c_0 + .. + c_{r-1} is where stage r starts.
Objective    minimise  F( sum_r add[r, a_r, c_r],  max_r peak[r, a_r, c_r],  max_r tail1[..],  max_r tail2[..] )
             for any F that never falls when an argument grows.
Constraints  (1) sum_r c_r = L                                          ``_reach``
             (2) low <= c_r <= high                                     shape of the tables
             (3) feasible[r, a_r, c_r]: an infinite ``add`` forbids it  ``_extend``

Method: forward dynamic programming over (stage, start) with Pareto labels (sum, peak, tail1, tail2): a label that is
no better in any of the four is dropped (``_pareto``), which keeps an optimum because F is monotone.  ``cutoff`` drops
labels whose F, completed by the cheapest way to finish, cannot beat it (``_finish_sum``).  Exact.

Shape letters: S stages, L items, A = L + 1 starts, C = high - low + 1 counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[[float, float, float, float], float]
Label = tuple[float, float, float, float, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class PartitionTables:
    """Costs of giving ``low + c`` items that start at ``a`` to stage ``r``: float64[S, A, C]; inf = forbidden."""

    add: Array
    peak: Array
    tail1: Array
    tail2: Array
    low: int

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


def partition(tables: PartitionTables, objective: Objective, cutoff: float = float("inf")) -> Partition | None:
    """Best dealing with objective below ``cutoff``; None when there is none.  Exact."""
    finish = _finish_sum(tables)
    labels: dict[int, list[Label]] = {0: [(0.0, 0.0, 0.0, 0.0, ())]}
    for stage in range(tables.num_stages):
        labels = _extend(tables, stage, labels, finish, objective, cutoff)
        if not labels:
            return None
    best: Partition | None = None
    for total, peak, tail1, tail2, counts in labels.get(tables.num_items, []):
        value = objective(total, peak, tail1, tail2)
        if value < cutoff and (best is None or value < best.objective):
            best = Partition(counts=counts, objective=value)
    return best


def _extend(
    tables: PartitionTables,
    stage: int,
    labels: dict[int, list[Label]],
    finish: Array,
    objective: Objective,
    cutoff: float,
) -> dict[int, list[Label]]:
    """Labels after ``stage``, by where the next stage starts."""
    grown: dict[int, list[Label]] = {}
    add, peak, tail1, tail2 = (
        table[stage] for table in (tables.add, tables.peak, tables.tail1, tables.tail2)
    )
    for start, here in labels.items():
        for column in np.flatnonzero(np.isfinite(add[start])).tolist():
            stop = start + tables.low + column
            if stop > tables.num_items or not np.isfinite(finish[stage + 1, stop]):
                continue
            a, p = float(add[start, column]), float(peak[start, column])
            t1, t2 = float(tail1[start, column]), float(tail2[start, column])
            rest = float(finish[stage + 1, stop])
            for total, top, end1, end2, counts in here:
                label = (total + a, max(top, p), max(end1, t1), max(end2, t2), (*counts, stop - start))
                if objective(label[0] + rest, label[1], label[2], label[3]) < cutoff:
                    grown.setdefault(stop, []).append(label)
    return {stop: _pareto(found) for stop, found in grown.items()}


def _pareto(labels: list[Label]) -> list[Label]:
    """Labels that no other one beats or equals in all four values; ties keep the first in sorted order."""
    kept: list[Label] = []
    for label in sorted(labels):
        if not any(k[1] <= label[1] and k[2] <= label[2] and k[3] <= label[3] for k in kept):
            kept.append(label)
    return kept


def _finish_sum(tables: PartitionTables) -> Array:
    """Smallest ``add`` still to come after each (stage, start): [S + 1, A]; inf = cannot be finished."""
    stages, items = tables.num_stages, tables.num_items
    rest = np.full((stages + 1, items + 1), np.inf)
    rest[stages, items] = 0.0
    width = tables.add.shape[2]
    for stage in range(stages - 1, -1, -1):
        for column in range(width):
            step = tables.low + column
            if step > items:
                break
            via = tables.add[stage, : items + 1 - step, column] + rest[stage + 1, step:]
            rest[stage, : items + 1 - step] = np.minimum(rest[stage, : items + 1 - step], via)
    return rest
