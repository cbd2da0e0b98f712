"""Nodes of pools are allocated to jobs: the best choice of each job, for goals in their order.

Variables    x[j, c] = 1: job j takes its choice c;   y[j, b], u[j, b]: nodes of block b of a job whose choice limits
             its blocks, and whether it has any there
Maximise     the first goal; then each other one, without giving up what those before it reached
Subject to   (1) one choice a job, at least one where it must run                          ``_choices``
             (2) nodes of a pool: sum of nodes[c] x[j, c] <= free                           ``_pools``
             (3) nodes of a limited choice lie in at most ``most_blocks`` blocks            ``_limited``
             (4) nodes of a block: those of limited and of held choices <= free             ``_blocks``

Choices without a limit need no variables of blocks: whatever (4) leaves free in a pool holds them.  A goal ``least``
is bisected: with the choices below a value left out, is there an allocation at all?  A goal ``sum`` is the objective
of one program; its values are rounded to ``1 / ROUNDING`` of the largest one, because CP-SAT counts in whole numbers,
and bounds are given with that error added, so that they hold for the values as they are.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from solver.constraint_program import Effort, WholeProgram, solve_whole
from solver.fleet.tables import Allocation, CannotAllocate, FleetTables, Goal, Reached

ROUNDING = 10**6
LONGEST_S = 60.0
"""For a first point, where jobs must run; without such jobs it is found at once: all wait."""
WHOLE_S = 1.5
"""Deterministic seconds for each second of the clock: a slow machine must not end a search by its clock first."""


@dataclass(slots=True)
class _Model:
    """The program of the tables, with its columns by meaning."""

    tables: FleetTables
    program: WholeProgram = field(default_factory=WholeProgram)
    takes: list[list[int]] = field(default_factory=list)
    in_block: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """(job, pool, block) -> its column of nodes there."""
    point: Sequence[int] | None = None
    """The best point so far, or where to start; ``sure``: it keeps every row."""
    sure: bool = False


def allocate(
    tables: FleetTables,
    goals: Sequence[Goal],
    *,
    time_limit_s: float,
    seed: int = 0,
    workers: int = 1,
    former: Sequence[int | None] | None = None,
) -> Allocation:
    """The best allocation that the time suffices for, with a bound of every goal.

    ``former``: choices to start from.  Raises CannotAllocate where jobs that must run cannot all do so.
    """
    end_s = time.monotonic() + time_limit_s
    model = _model(tables)
    start = _mended(tables, former)
    model.point = None if start is None else _point(model, start)
    bounds = list[tuple[float, bool]]()
    for place, goal in enumerate(goals):
        share_s = max((end_s - time.monotonic()) / (len(goals) - place), 0.05)
        effort = Effort(share_s, share_s * WHOLE_S, seed, workers)
        bounds.append((_most if goal.kind == "sum" else _least)(model, goal, effort))
    chosen = tuple(_chosen(model))
    values = [goal_value(goal, chosen) for goal in goals]
    reached = [
        Reached(goal.name, value, max(value, bound), proved)
        for goal, value, (bound, proved) in zip(goals, values, bounds, strict=True)
    ]
    return Allocation(chosen, tuple(reached))


def goal_value(goal: Goal, chosen: Sequence[int | None]) -> float:
    """How far an allocation reaches a goal, by the values as they are."""
    taken = [goal.values[job][choice] for job, choice in enumerate(chosen) if choice is not None]
    return sum(taken) if goal.kind == "sum" else min(taken, default=0.0)


def with_one_node_more(tables: FleetTables, pool: int) -> FleetTables:
    """The same with one free node more in a pool, in a block of its own."""
    free = tuple((*blocks, 1) if at == pool else blocks for at, blocks in enumerate(tables.free))
    return replace(tables, free=free)


def _model(tables: FleetTables) -> _Model:
    model = _Model(tables)
    _choices(model)
    _pools(model)
    for job in range(len(tables.jobs)):
        for pool in range(len(tables.free)):
            _limited(model, job, pool)
    _blocks(model)
    return model


def _choices(model: _Model) -> None:
    """(1) One choice a job."""
    for choices, must in zip(model.tables.jobs, model.tables.must_run, strict=True):
        columns = [model.program.column(0, 1) for _ in choices]
        model.takes.append(columns)
        if columns:
            model.program.at_most_one.append(columns)
        if must:
            model.program.add(dict.fromkeys(columns, 1), low=1)


def _pools(model: _Model) -> None:
    """(2) The nodes of a pool."""
    for pool, blocks in enumerate(model.tables.free):
        entries = {
            column: choice.nodes
            for choices, columns in zip(model.tables.jobs, model.takes, strict=True)
            for choice, column in zip(choices, columns, strict=True)
            if choice.pool == pool
        }
        model.program.add(entries, high=sum(blocks))


def _limited(model: _Model, job: int, pool: int) -> None:
    """(3) As many blocks as the choice allows."""
    program, blocks = model.program, model.tables.free[pool]
    limited = [
        (choice.nodes, choice.most_blocks, column)
        for choice, column in zip(model.tables.jobs[job], model.takes[job], strict=True)
        if choice.pool == pool and choice.held is None and choice.most_blocks is not None
    ]
    if not limited:
        return
    nodes, touches = dict[int, int](), dict[int, int]()
    for block, free in enumerate(blocks):
        if free == 0:
            continue
        there, touched = program.column(0, free), program.column(0, 1)
        program.add({there: 1, touched: -free}, high=0)
        model.in_block[job, pool, block] = there
        nodes[there] = touches[touched] = 1
    program.add(nodes | {column: -count for count, _, column in limited}, low=0, high=0)
    program.add(touches | {column: -most for _, most, column in limited}, high=0)


def _blocks(model: _Model) -> None:
    """(4) The nodes of a block."""
    used: defaultdict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for (_, pool, block), column in model.in_block.items():
        used[pool, block][column] = 1
    for choices, columns in zip(model.tables.jobs, model.takes, strict=True):
        for choice, column in zip(choices, columns, strict=True):
            for block, nodes in (choice.held or {}).items():
                used[choice.pool, block][column] = nodes
    for (pool, block), entries in used.items():
        model.program.add(entries, high=model.tables.free[pool][block])


def _most(model: _Model, goal: Goal, effort: Effort) -> tuple[float, bool]:
    """The greatest sum, which stays; its bound, and whether it is proved."""
    largest = max((abs(value) for values in goal.values for value in values), default=0.0)
    scale = ROUNDING / (largest or 1.0)
    gain = {
        column: round(value * scale)
        for columns, values in zip(model.takes, goal.values, strict=True)
        for column, value in zip(columns, values, strict=True)
    }
    solved = solve_whole(model.program, gain, effort, model.point)
    if solved.infeasible:
        raise CannotAllocate
    if solved.values is not None:
        model.point, model.sure, bound = solved.values, True, solved.bound
    else:
        model.point = _any_point(model)
        bound = sum(max((0, *(gain[column] for column in columns))) for columns in model.takes)
    model.program.add(gain, low=sum(weight * model.point[column] for column, weight in gain.items()))
    return (bound + 0.5 * len(model.takes)) / scale, solved.optimal


def _least(model: _Model, goal: Goal, effort: Effort) -> tuple[float, bool]:
    """The greatest least value, which stays; its bound, and whether it is proved."""
    model.point = model.point if model.point is not None and model.sure else _any_point(model)
    steps = sorted({value for values in goal.values for value in values})
    end_s, top, refused = time.monotonic() + effort.wall_s, len(steps), len(steps)
    value = goal_value(goal, _chosen(model))
    low = bisect_right(steps, value) if any(at is not None for at in _chosen(model)) else 0
    while low < top and time.monotonic() < end_s:
        middle = (low + top) // 2
        found, impossible = _all_at_least(model, goal, steps[middle], end_s - time.monotonic(), effort)
        if found is None:
            top = middle
            refused = middle if impossible else refused
        else:
            model.point = found
            low = max(middle + 1, bisect_right(steps, goal_value(goal, _chosen(model))))
    value = goal_value(goal, _chosen(model))
    if any(at is not None for at in _chosen(model)):
        _leave_out(model, model.program, goal, value)
    return max(value, steps[refused - 1] if refused else 0.0), refused <= low


def _all_at_least(
    model: _Model, goal: Goal, value: float, left_s: float, effort: Effort
) -> tuple[Sequence[int] | None, bool]:
    """A point where nobody who runs is below a value; else whether it is proved that none exists."""
    program = replace(model.program, bounds=list(model.program.bounds), rows=list(model.program.rows))
    _leave_out(model, program, goal, value)
    solved = solve_whole(program, {}, replace(effort, wall_s=left_s, deterministic_s=effort.deterministic_s / 4))
    return solved.values, solved.infeasible


def _leave_out(model: _Model, program: WholeProgram, goal: Goal, value: float) -> None:
    """Somebody runs, and nobody who does is below a value."""
    for columns, values in zip(model.takes, goal.values, strict=True):
        for column, each in zip(columns, values, strict=True):
            if each < value:
                program.bounds[column] = 0, 0
    program.add({column: 1 for columns in model.takes for column in columns}, low=1)


def _any_point(model: _Model) -> Sequence[int]:
    """A point, whatever it is worth; where jobs must run it may take a while to find one."""
    solved = solve_whole(model.program, {}, Effort(LONGEST_S, LONGEST_S), model.point)
    if solved.values is None:
        raise CannotAllocate
    model.sure = True
    return solved.values


def _chosen(model: _Model) -> list[int | None]:
    point = model.point
    assert point is not None
    return [next((at for at, column in enumerate(columns) if point[column]), None) for columns in model.takes]


def _mended(tables: FleetTables, former: Sequence[int | None] | None) -> list[int | None] | None:
    """The former choices as far as the nodes of the pools hold them; the rest wait."""
    if former is None:
        return None
    left = [sum(blocks) for blocks in tables.free]
    kept = list[int | None]()
    for choices, at in zip(tables.jobs, former, strict=True):
        fits = at is not None and choices[at].nodes <= left[choices[at].pool]
        kept.append(at if fits else None)
        if fits and at is not None:
            left[choices[at].pool] -= choices[at].nodes
    return kept


def _point(model: _Model, chosen: Sequence[int | None]) -> list[int]:
    """A point with these choices; of columns of blocks it says nothing better than none."""
    values = [low for low, _ in model.program.bounds]
    for columns, at in zip(model.takes, chosen, strict=True):
        if at is not None:
            values[columns[at]] = 1
    return values
