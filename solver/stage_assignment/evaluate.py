"""What is an assignment worth, and does it keep the rules?  Recomputed from the tables, trusting no engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.check import CheckFailed
from solver.stage_assignment.tables import (
    Array,
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
    times, paces, lates, hops, start = [], [], [], 0.0, 0
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
            hops += float(tables.hop[stages[index - 1].option, stage.option])
        start += stage.count
    if start != tables.num_items:
        raise CheckFailed(f"{start} of {tables.num_items} items are assigned")
    if np.any(used > tables.pool_units):
        raise CheckFailed(f"{used.tolist()} units are used of {tables.pool_units.tolist()}")
    if not tables.fewest_stages <= len(stages) <= tables.most_stages:
        raise CheckFailed(f"{len(stages)} stages are not between {tables.fewest_stages} and {tables.most_stages}")
    before = np.concatenate([[0.0], np.cumsum(times)[:-1]])
    late = float(np.maximum(np.array(lates) - objective.hides * before, 0.0).max())
    parts = (max(paces), float(sum(times)), hops, late)
    value = objective.value(*(np.array([part]) for part in (*parts, float(len(stages)))))
    return AssignmentValue(*parts, value=float(value[0]))


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
