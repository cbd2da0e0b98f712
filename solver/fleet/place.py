"""Where the nodes of each job lie: as few blocks as possible, then as many of the nodes that it holds as possible.

Pools do not know each other here, so each is a program of its own::

    Maximise     sum of kept[j, b] - WEIGHT sum of u[j, b]
    Subject to   sum over b of y[j, b] = nodes[j];   sum over j of y[j, b] <= free[b]
                 y[j, b] <= free[b] u[j, b];   kept[j, b] <= y[j, b], held[j, b];   sum over b of u[j, b] <= most[j]

A greedy placement (large jobs first, each into the fullest block that holds it) is taken as it is where it touches no
more blocks than every job alone would need; else it is where the search starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from solver.constraint_program import Effort, WholeProgram, solve_whole
from solver.fleet.tables import CannotAllocate, Choice, FleetTables, Placement


def place(tables: FleetTables, chosen: Sequence[int | None], *, time_limit_s: float, seed: int = 0) -> Placement:
    """The blocks of every job that runs."""
    found: list[Mapping[int, int]] = [{} for _ in chosen]
    bound = 0
    for pool in range(len(tables.free)):
        running = {
            job: tables.jobs[job][at]
            for job, at in enumerate(chosen)
            if at is not None and tables.jobs[job][at].pool == pool
        }
        effort = Effort(time_limit_s / len(tables.free), time_limit_s / len(tables.free), seed)
        placed, least = _placed(tables, pool, running, effort)
        bound += least
        for job, blocks in placed.items():
            found[job] = blocks
    return Placement(tuple(found), sum(map(len, found)), bound)


Placed = dict[int, Mapping[int, int]]
"""Job -> block -> nodes of it there."""


def _placed(tables: FleetTables, pool: int, running: dict[int, Choice], effort: Effort) -> tuple[Placed, int]:
    """The placement in one pool, and how many blocks no placement undercuts."""
    free = list(tables.free[pool])
    placed: Placed = {}
    for job, choice in running.items():
        if choice.held is not None:
            placed[job] = dict(choice.held)
            for block, nodes in choice.held.items():
                free[block] -= nodes
    moving = {job: choice for job, choice in running.items() if job not in placed}
    held = {job: _held(tables, job, pool) for job in moving}
    fixed = sum(map(len, placed.values()))
    greedy, alone = _greedy(free, moving, held), sum(_fewest(free, choice.nodes) for choice in moving.values())
    touched = sum(map(len, greedy.values()))
    legal = all(len(greedy[job]) <= (choice.most_blocks or len(free)) for job, choice in moving.items())
    if legal and touched == alone:
        return placed | greedy, fixed + alone
    better, least = _searched(free, moving, held, greedy, effort)
    return placed | better, fixed + max(least, alone)


def _held(tables: FleetTables, job: int, pool: int) -> dict[int, int]:
    return {block: nodes for (at, block), nodes in tables.held[job].items() if at == pool}


def _fewest(free: Sequence[int], nodes: int) -> int:
    """Blocks that so many nodes need where no other job is."""
    count = 0
    for room in sorted(free, reverse=True):
        if nodes <= 0:
            break
        nodes, count = nodes - room, count + 1
    return count


def _greedy(free: Sequence[int], moving: Mapping[int, Choice], held: Mapping[int, Mapping[int, int]]) -> Placed:
    """Large jobs first: the fullest block that holds all that is left of the job, else the emptiest one."""
    left, placed = list(free), dict[int, Mapping[int, int]]()
    for job, choice in sorted(moving.items(), key=lambda each: (-each[1].nodes, each[0])):
        nodes, blocks = choice.nodes, dict[int, int]()
        while nodes > 0:
            whole = [at for at, room in enumerate(left) if room >= nodes]
            # Of equal rooms the one where the job has most of its nodes.
            at = (
                min(whole, key=lambda block: (left[block], -held[job].get(block, 0), block))
                if whole
                else max(range(len(left)), key=lambda block: (left[block], held[job].get(block, 0), -block))
            )
            taken = min(nodes, left[at])
            blocks[at] = taken
            nodes, left[at] = nodes - taken, left[at] - taken
        placed[job] = blocks
    return placed


def _searched(
    free: Sequence[int],
    moving: Mapping[int, Choice],
    held: Mapping[int, Mapping[int, int]],
    greedy: Placed,
    effort: Effort,
) -> tuple[Placed, int]:
    program, gain = WholeProgram(), dict[int, int]()
    weight = 1 + sum(choice.nodes for choice in moving.values())
    open_blocks = [block for block, room in enumerate(free) if room > 0]
    columns, start = dict[tuple[int, int], int](), list[int]()
    for job, choice in moving.items():
        touches = dict[int, int]()
        for block in open_blocks:
            there, touched = program.column(0, min(free[block], choice.nodes)), program.column(0, 1)
            columns[job, block] = there
            program.add({there: 1, touched: -min(free[block], choice.nodes)}, high=0)
            gain[touched], touches[touched] = -weight, 1
            nodes = greedy[job].get(block, 0)
            start += [nodes, int(nodes > 0)]
            own = min(held[job].get(block, 0), choice.nodes, free[block])
            if own:
                kept = program.column(0, own)
                program.add({kept: 1, there: -1}, high=0)
                gain[kept] = 1
                start.append(min(nodes, own))
        program.add({columns[job, block]: 1 for block in open_blocks}, low=choice.nodes, high=choice.nodes)
        most = len(open_blocks) if choice.most_blocks is None else choice.most_blocks
        program.add(touches, low=_fewest(free, choice.nodes), high=most)
    for block in open_blocks:
        program.add({columns[job, block]: 1 for job in moving}, high=free[block])
    solved = solve_whole(program, gain, effort, start)
    if solved.values is None:
        if any(len(greedy[job]) > (choice.most_blocks or len(free)) for job, choice in moving.items()):
            raise CannotAllocate
        return greedy, 0
    found: Placed = {
        job: {block: solved.values[columns[job, block]] for block in open_blocks if solved.values[columns[job, block]]}
        for job in moving
    }
    # Kept nodes are worth less than one block together, so the bound on both gives one on blocks.
    return found, max(0, -(solved.bound // weight))
