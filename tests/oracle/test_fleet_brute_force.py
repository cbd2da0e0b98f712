"""Small fleets: every allocation and every placement is tried; the solver's is as good, and its check agrees."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal

import pytest

from solver.check import CheckFailed
from solver.fleet.allocate import ROUNDING, allocate, goal_value, with_one_node_more
from solver.fleet.check import check_fleet
from solver.fleet.place import place
from solver.fleet.share import share_fleet
from solver.fleet.tables import CannotAllocate, Choice, FleetTables, Goal, Placement
from tests.sampling import drawn

SEEDS = drawn(range(300), 6, kept=(37, 106))


def random_tables(random_: random.Random) -> FleetTables:
    """Up to four jobs on up to two pools of up to three blocks."""
    free = tuple(
        tuple(random_.randint(0, 4) for _ in range(random_.randint(1, 3))) for _ in range(random_.randint(1, 2))
    )
    left = [list(blocks) for blocks in free]
    jobs, held = [], []
    for _ in range(random_.randint(1, 4)):
        choices = []
        for _ in range(random_.randint(1, 4)):
            most = random_.choice((None, None, 1, 2))
            choices.append(Choice(random_.randrange(len(free)), random_.randint(1, 6), most))
        pool = random_.randrange(len(free))
        own = {at: random_.randint(0, room) for at, room in enumerate(left[pool]) if random_.random() < 0.4}
        own = {at: nodes for at, nodes in own.items() if nodes}
        for at, nodes in own.items():
            left[pool][at] -= nodes
        if own:
            choices.append(Choice(pool, sum(own.values()), held=own))
        jobs.append(tuple(choices))
        held.append({(pool, at): nodes for at, nodes in own.items()})
    must = tuple(random_.random() < 0.2 for _ in jobs)
    return FleetTables(free, tuple(jobs), must, tuple(held))


def random_goal(tables: FleetTables, random_: random.Random) -> Goal:
    kind: Literal["sum", "least"] = "least" if random_.random() < 0.3 else "sum"
    low = -5 if kind == "sum" and random_.random() < 0.3 else 1
    return Goal("goal", kind, tuple(tuple(float(random_.randint(low, 9)) for _ in each) for each in tables.jobs))


def spreads(blocks: Sequence[int], choice: Choice) -> Iterator[dict[int, int]]:
    """Every way in which the nodes of a choice lie in the blocks of its pool."""
    if choice.held is not None:
        yield dict(choice.held)
        return
    for counts in product(*(range(min(room, choice.nodes) + 1) for room in blocks)):
        where = {at: count for at, count in enumerate(counts) if count}
        if sum(counts) == choice.nodes and len(where) <= (choice.most_blocks or len(blocks)):
            yield where


def fewest_touched(tables: FleetTables, chosen: Sequence[int | None], job: int, left: list[list[int]]) -> int | None:
    """Blocks that the jobs from ``job`` on touch at the least; None = they have no room."""
    if job == len(chosen):
        return 0
    at, best = chosen[job], None
    if at is None:
        return fewest_touched(tables, chosen, job + 1, left)
    choice = tables.jobs[job][at]
    for where in spreads(tables.free[choice.pool], choice):
        room = left[choice.pool]
        if all(room[block] >= nodes for block, nodes in where.items()):
            rest = [list(each) for each in left]
            for block, nodes in where.items():
                rest[choice.pool][block] -= nodes
            found = fewest_touched(tables, chosen, job + 1, rest)
            if found is not None and (best is None or found + len(where) < best):
                best = found + len(where)
    return best


def every_allocation(tables: FleetTables) -> dict[tuple[int | None, ...], int]:
    """Allocations that have room -> blocks that they touch at the least."""
    ranges = [
        (*range(len(choices)), *(() if must else (None,)))
        for choices, must in zip(tables.jobs, tables.must_run, strict=True)
    ]
    found = {}
    for chosen in product(*ranges):
        touched = fewest_touched(tables, chosen, 0, [list(blocks) for blocks in tables.free])
        if touched is not None:
            found[chosen] = touched
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_as_good_as_the_best_of_all(seed: int) -> None:
    random_ = random.Random(seed)
    tables = random_tables(random_)
    goals = (random_goal(tables, random_), random_goal(tables, random_))
    possible = every_allocation(tables)
    if not possible:
        with pytest.raises(CannotAllocate):
            share_fleet(tables, goals, time_limit_s=5)
        return
    shared = share_fleet(tables, goals, time_limit_s=5)
    found, placed = shared.allocation, shared.placement
    first = max(goal_value(goals[0], chosen) for chosen in possible)
    equal = [chosen for chosen in possible if goal_value(goals[0], chosen) == first]
    second = max(goal_value(goals[1], chosen) for chosen in equal)
    assert [each.value for each in found.reached] == [first, second]
    assert all(each.proved and each.bound <= each.value + 60 / ROUNDING for each in found.reached)
    assert placed.touched == placed.least_touched == possible[found.chosen]
    whole = allocate(tables, goals, time_limit_s=5)
    assert [each.value for each in whole.reached] == [first, second]


def two_jobs() -> tuple[FleetTables, Goal]:
    """Two jobs that want three of the four nodes; each block has two."""
    choices = (Choice(0, 1), Choice(0, 3))
    tables = FleetTables(((2, 2),), (choices, choices), (False, False), ({}, {}))
    return tables, Goal("speed", "sum", ((1.0, 3.5), (1.0, 2.0)))


def test_the_check_refuses_what_is_wrong() -> None:
    tables, goal = two_jobs()
    found = allocate(tables, (goal,), time_limit_s=5)
    assert found.chosen == (1, 0)
    good = place(tables, found.chosen, time_limit_s=5)
    check_fleet(tables, (goal,), found, good)
    wrong = [
        (found, replace(good, blocks=({0: 2, 1: 1}, {0: 1}))),
        (found, replace(good, blocks=({0: 2, 1: 1}, {}))),
        (replace(found, chosen=(1, 1)), Placement(({0: 2, 1: 1}, {0: 2, 1: 1}), 4, 4)),
        (replace(found, reached=(replace(found.reached[0], value=5.0),)), good),
        (replace(found, reached=(replace(found.reached[0], bound=4.0),)), good),
    ]
    for allocation, placement in wrong:
        with pytest.raises(CheckFailed):
            check_fleet(tables, (goal,), allocation, placement)


def test_a_former_answer_is_where_the_search_starts_and_changes_nothing() -> None:
    tables, goal = two_jobs()
    cold = allocate(tables, (goal,), time_limit_s=5)
    for former in ((None, None), (0, 0), (0, 1), (1, 1), cold.chosen):
        assert allocate(tables, (goal,), time_limit_s=5, former=former) == cold


def test_one_node_more_is_worth_what_the_best_allocation_with_it_is_worth() -> None:
    tables, goal = two_jobs()
    more = with_one_node_more(tables, 0)
    assert more.free == ((2, 2, 1),)
    assert allocate(more, (goal,), time_limit_s=5).reached[0].value == 4.5
    assert allocate(with_one_node_more(more, 0), (goal,), time_limit_s=5).reached[0].value == 5.5
