"""A limit on the number of stages of an assignment below a cutoff; fewer stages give tighter bounds.

For S stages, at least, with m any number (a price on stages) and x the smallest peak with room in S positions::

    F >= F( x, max over m of ( least sum of (t - m) + m S ), 0, 0, S )

The largest S where that is below the cutoff takes the place of ``most``; x grows with it, so this is done again until
nothing changes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solver.arrays import Array
from solver.stage_assignment.rest import Rest, least_by_count, lowest_peak
from solver.stage_assignment.tables import AssignmentObjective, AssignmentTables

PRICES = (0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
"""Prices on stages, in parts of the smallest peak with room."""


def with_fewer_stages(
    tables: AssignmentTables, objective: AssignmentObjective, cutoff: float
) -> AssignmentTables | None:
    """The same tables with no more stages than an F below ``cutoff`` allows; None when it allows none."""
    limit, totals = tables.stage_limit(), None
    while limit >= max(tables.fewest_stages, 1):
        cut = _up_to(tables, limit)
        lowest = lowest_peak(cut, least_by_count(cut, cut.pace))
        if lowest is None:
            return None
        totals = _least_totals(cut, lowest, limit) if totals is None else totals[: limit + 1]
        counts, zero = np.arange(1, limit + 1), np.zeros(limit)
        least = objective.value(zero + lowest, totals[1:], zero, zero, counts.astype(float))
        below = counts[least < cutoff]
        if not len(below):
            return None
        if below[-1] == limit:
            return cut
        limit = int(below[-1])
    return None


def _up_to(tables: AssignmentTables, stages: int) -> AssignmentTables:
    """The tables with no more stages than that."""
    share, mix = tables.pace_share, tables.pace_mix
    return replace(
        tables,
        most_stages=stages,
        time=tables.time[:, :, :stages],
        late=tables.late[:, :, :stages],
        pace_share=None if share is None else share[:, :stages],
        pace_mix=None if mix is None else mix[:stages],
    )


def _least_totals(tables: AssignmentTables, peak: float, most: int) -> Array:
    """A bound on the summed time of every number of stages up to ``most``: [most + 1]."""
    best = least_by_count(tables, tables.time)
    counts, found = np.arange(most + 1), np.full(most + 1, -np.inf)
    for price in PRICES:
        whole = Rest(tables, best - price * peak, np.zeros(best.shape), 0.0).whole()
        found = np.maximum(found, whole + price * peak * counts)
    return found
