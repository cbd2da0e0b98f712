"""The value of an assignment, and the check of its rules: recomputed from the tables, trusting no engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.arrays import Array
from solver.check import CheckFailed
from solver.stage_assignment.tables import (
    Assignment,
    AssignmentObjective,
    AssignmentTables,
    AssignmentValue,
    StageChoice,
)


def assignment_value(
    tables: AssignmentTables, stages: Sequence[StageChoice], objective: AssignmentObjective
) -> AssignmentValue:
    """Peak, total, hops, late and F of a complete assignment.  Raises CheckFailed where it breaks a constraint."""
    used = np.zeros(len(tables.pool_units), dtype=np.int64)
    times, paces, lates, each_hop, start = [], [], [], [], 0
    for index, stage in enumerate(stages):
        if stage.start != start or stage.count < 1:
            raise CheckFailed(f"stage {index} starts at item {stage.start}, expected {start}")
        from_end = len(stages) - index
        times.append(_entry(tables, tables.time, stage, from_end))
        paces.append(_entry(tables, tables.pace, stage, from_end))
        lates.append(_entry(tables, tables.late, stage, from_end))
        if not np.isfinite(times[-1]):
            raise CheckFailed(f"stage {index} cannot hold {stage.count} items from {stage.start}")
        used[tables.option_pool[stage.option]] += tables.option_units[stage.option]
        if index:
            each_hop.append(float(tables.hop[stages[index - 1].option, stage.option]))
        start += stage.count
    if start != tables.num_items:
        raise CheckFailed(f"{start} of {tables.num_items} items are assigned")
    if np.any(used > tables.pool_units):
        raise CheckFailed(f"{used.tolist()} units are used of {tables.pool_units.tolist()}")
    if not tables.fewest_stages <= len(stages) <= tables.most_stages:
        raise CheckFailed(f"{len(stages)} stages are not between {tables.fewest_stages} and {tables.most_stages}")
    before = np.concatenate([[0.0], np.cumsum(times)[:-1]])
    late = float(np.maximum(np.array(lates) - objective.hides * before, 0.0).max())
    peak = max(*paces, *_mixed_paces(tables, times, each_hop))
    parts = (peak, float(sum(times)), float(sum(each_hop)), late)
    value = objective.value(*(np.array([part]) for part in (*parts, float(len(stages)))))
    return AssignmentValue(*parts, value=float(value[0]))


def _mixed_paces(tables: AssignmentTables, times: Sequence[float], hops: Sequence[float]) -> list[float]:
    """What each stage counts for in the peak together with what stands behind it."""
    if tables.pace_mix is None:
        return [0.0]
    found = []
    for index, time in enumerate(times):
        own, of_times, of_hops = tables.pace_mix[tables.position(len(times) - index)].tolist()
        found.append(own * time + of_times * sum(times[index + 1 :]) + of_hops * sum(hops[index:]))
    return found


def check_assignment(
    tables: AssignmentTables, answer: Assignment, objective: AssignmentObjective, tolerance: float = 1e-9
) -> None:
    """Raise CheckFailed unless the assignment keeps the rules and is worth what it claims."""
    found = assignment_value(tables, answer.stages, objective).value
    if not abs(found - answer.value.value) <= tolerance * max(abs(found), 1e-12):
        raise CheckFailed(f"objective is {found}, claimed {answer.value.value}")
    if answer.bound > found * (1 + tolerance) + 1e-12:
        raise CheckFailed(f"the bound {answer.bound} is above the objective {found}")


def _entry(tables: AssignmentTables, table: Array, stage: StageChoice, from_end: int) -> float:
    if stage.count > tables.span_class.shape[1]:
        return float("inf")
    at = int(tables.span_class[stage.start, stage.count - 1])
    if at < 0:
        return float("inf")
    return float(table[stage.option, stage.policy, tables.position(from_end), at])
