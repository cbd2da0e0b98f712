"""The check of an answer: recomputed from the tables, trusting no engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.stage_partition import Objective, PartitionTables


class CheckFailed(Exception):
    """An engine returned an infeasible answer or a wrong objective; never shown as a plan."""


def check_partition(
    tables: PartitionTables, counts: Sequence[int], objective: Objective, claimed: float, tolerance: float = 1e-9
) -> float:
    """Recompute feasibility and objective of a dealing; return the objective or raise CheckFailed."""
    if len(counts) != tables.num_stages or sum(counts) != tables.num_items:
        raise CheckFailed(f"{len(counts)} stages hold {sum(counts)} of {tables.num_items} items")
    start, total, peak, tail1, tail2 = 0, 0.0, 0.0, 0.0, 0.0
    more = [0.0] * len(tables.more)
    for stage, count in enumerate(counts):
        column = count - tables.low
        if not 0 <= column < tables.add.shape[2] or not np.isfinite(tables.add[stage, start, column]):
            raise CheckFailed(f"stage {stage} cannot hold {count} items from {start}")
        total += float(tables.add[stage, start, column])
        peak = max(peak, float(tables.peak[stage, start, column]))
        tail1 = max(tail1, float(tables.tail1[stage, start, column]))
        tail2 = max(tail2, float(tables.tail2[stage, start, column]))
        more = [
            sum_so_far + float(each[stage, start, column]) for sum_so_far, each in zip(more, tables.more, strict=True)
        ]
        start += count
    value = float(objective(*(np.array([part]) for part in (total, peak, tail1, tail2, *more)))[0])
    # Written so that a NaN or an infinite claim fails too.
    if not abs(value - claimed) <= tolerance * max(abs(value), 1e-12):
        raise CheckFailed(f"objective is {value}, claimed {claimed}")
    return value
