"""A fleet is shared: who gets how many nodes, and in which blocks.

The limits of blocks make the program many times larger and seldom change who gets what.  So they are left out first:
where the nodes of that allocation can be placed within the limits it is the best one of the whole question, and its
bounds are those of the question.  Only where they cannot is the whole program solved.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from solver.fleet.allocate import allocate
from solver.fleet.check import check_fleet
from solver.fleet.place import place
from solver.fleet.tables import Allocation, CannotAllocate, FleetTables, Goal, Placement, Reached

FREE_PART = 0.4
"""Part of the time for the question without limits of blocks."""
PLACE_PART = 0.15


@dataclass(frozen=True, slots=True)
class Shared:
    """The answer, checked."""

    allocation: Allocation
    placement: Placement


def share_fleet(
    tables: FleetTables,
    goals: Sequence[Goal],
    *,
    time_limit_s: float,
    seed: int = 0,
    workers: int = 1,
    former: Sequence[int | None] | None = None,
) -> Shared:
    """The best allocation and its placement.  Raises CannotAllocate, CheckFailed."""
    end_s = time.monotonic() + time_limit_s
    limited = any(choice.most_blocks is not None for choices in tables.jobs for choice in choices)
    part = FREE_PART if limited else 1.0 - PLACE_PART
    loose = replace(tables, jobs=tuple(tuple(replace(each, most_blocks=None) for each in job) for job in tables.jobs))
    found = allocate(loose, goals, time_limit_s=part * time_limit_s, seed=seed, workers=workers, former=former)
    try:
        placed = place(tables, found.chosen, time_limit_s=PLACE_PART * time_limit_s, seed=seed)
    except CannotAllocate:
        if not limited:
            raise
        left_s = max(end_s - time.monotonic() - PLACE_PART * time_limit_s, 0.1)
        whole = allocate(tables, goals, time_limit_s=left_s, seed=seed, workers=workers, former=former)
        found = Allocation(whole.chosen, _closer(whole.reached, found.reached))
        placed = place(tables, found.chosen, time_limit_s=max(end_s - time.monotonic(), 1.0), seed=seed)
    check_fleet(tables, goals, found, placed)
    return Shared(found, placed)


def _closer(whole: Sequence[Reached], loose: Sequence[Reached]) -> tuple[Reached, ...]:
    """The bounds of the question without limits hold too, as long as the goals before are reached as far as there."""
    closer, same = list[Reached](), True
    for each, free in zip(whole, loose, strict=True):
        bound = max(each.value, min(each.bound, free.bound)) if same else each.bound
        closer.append(replace(each, bound=bound))
        same = same and each.value >= free.value
    return tuple(closer)
