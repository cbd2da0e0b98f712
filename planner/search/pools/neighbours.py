"""Faster assignments near a fast one: layers moved between its stages, one at a time, and simulated.

Many assignments share the bound that the search minimises (``step_objective``) and differ in the simulated step.  From
one of them, every move of a layer from one stage to another is tried; each stage then takes its fastest policy.  The
fastest result is where the next round starts, until none is faster.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.search.pools.step import SimulatedStages, simulated_stages
from solver.stage_assignment.evaluate import assignment_value
from solver.stage_assignment.tables import AssignmentObjective, AssignmentTables, StageChoice

MOST_SIMULATED = 200
"""Assignments that are simulated from one start."""


def fastest_neighbour(found: SimulatedStages, num_microbatches: int, objective: AssignmentObjective) -> SimulatedStages:
    """The assignment itself, or a faster one that moves of layers lead to."""
    tables, left = found.tables.tables, MOST_SIMULATED
    while left > 0:
        near = []
        for stages in _moved(tables, found.stages):
            value = assignment_value(tables, stages, objective)
            if value.value < found.step_s:
                near.append((value.value, stages, value.late))
        # The bound of a step tells which are worth a simulation.
        near.sort(key=lambda each: each[0])
        tried = [simulated_stages(found.tables, stages, num_microbatches, late_s) for _, stages, late_s in near[:left]]
        left -= len(tried)
        best = min(tried, key=lambda each: each.step_s, default=found)
        if best.step_s >= found.step_s:
            break
        found = best
    return found


def _moved(tables: AssignmentTables, stages: tuple[StageChoice, ...]) -> Iterator[tuple[StageChoice, ...]]:
    """Every assignment with one layer moved from one stage to another."""
    counts = [stage.count for stage in stages]
    for giver in range(len(stages)):
        for taker in range(len(stages)):
            if giver != taker and counts[giver] > 1:
                moved = list(counts)
                moved[giver] -= 1
                moved[taker] += 1
                dealt = _dealt(tables, stages, moved)
                if dealt is not None:
                    yield dealt


def _dealt(
    tables: AssignmentTables, stages: tuple[StageChoice, ...], counts: list[int]
) -> tuple[StageChoice, ...] | None:
    """The stages with other numbers of layers, each with its fastest policy; None where one cannot hold them."""
    start, dealt = 0, []
    for index, (stage, count) in enumerate(zip(stages, counts, strict=True)):
        span = int(tables.span_class[start, count - 1]) if count <= tables.span_class.shape[1] else -1
        if span < 0:
            return None
        times = tables.time[stage.option, :, tables.position(len(stages) - index), span]
        policy = int(np.argmin(times))
        if not np.isfinite(times[policy]):
            return None
        dealt.append(StageChoice(start, count, stage.option, policy))
        start += count
    return tuple(dealt)
