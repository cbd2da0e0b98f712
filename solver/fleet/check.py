"""The check of an allocation: recomputed from the tables, trusting no solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from solver.check import CheckFailed
from solver.fleet.tables import Allocation, FleetTables, Goal, Placement

TOLERANCE = 1e-9


def check_fleet(tables: FleetTables, goals: Sequence[Goal], found: Allocation, placed: Placement) -> None:
    """Raises CheckFailed where a node is given twice, a choice is not kept, or a goal is not what was claimed."""
    used: Counter[tuple[int, int]] = Counter()
    for job, (at, blocks) in enumerate(zip(found.chosen, placed.blocks, strict=True)):
        if at is None:
            if tables.must_run[job] or blocks:
                raise CheckFailed(f"job {job} waits, and must run or has nodes")
            continue
        choice = tables.jobs[job][at]
        if sum(blocks.values()) != choice.nodes or min(blocks.values()) < 1:
            raise CheckFailed(f"job {job} has {sum(blocks.values())} nodes and not {choice.nodes}")
        if choice.held is not None and dict(choice.held) != dict(blocks):
            raise CheckFailed(f"job {job} stays, and has other nodes")
        if choice.held is None and choice.most_blocks is not None and len(blocks) > choice.most_blocks:
            raise CheckFailed(f"job {job} lies in {len(blocks)} blocks")
        used.update({(choice.pool, block): nodes for block, nodes in blocks.items()})
    for (pool, block), nodes in used.items():
        if nodes > tables.free[pool][block]:
            raise CheckFailed(f"{nodes} nodes of block {block} of pool {pool} are given, which has fewer")
    for goal, reached in zip(goals, found.reached, strict=True):
        taken = [goal.values[job][at] for job, at in enumerate(found.chosen) if at is not None]
        value = sum(taken) if goal.kind == "sum" else min(taken, default=0.0)
        if not abs(value - reached.value) <= TOLERANCE * max(1.0, abs(value)) or not reached.bound >= reached.value:
            raise CheckFailed(f"{goal.name} is {value}, claimed {reached.value} of at most {reached.bound}")
