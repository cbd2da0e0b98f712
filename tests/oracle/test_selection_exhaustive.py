"""The selection solver against every selection there is."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from solver.selection.check import peak_usage, selection_cost
from solver.selection.dual import Dual
from solver.selection.incumbent import Incumbent, Pool
from solver.selection.presolve.merge import Contradiction
from solver.selection.presolve.presolve import CapacityExceeded, presolve
from solver.selection.problem import FORBIDDEN, SelectionProblem
from solver.selection.solve import solve

TRIALS = range(80)


def random_problem(seed: int) -> SelectionProblem:
    """Up to 7 nodes of up to 4 options: forbidden pairs, bijections, parallel edges, negative costs, tight memory."""
    random = np.random.default_rng(seed)
    num = int(random.integers(1, 8))
    counts = random.integers(1, 5, num)
    node_costs = random.integers(-20, 50, int(counts.sum()))
    node_costs[random.random(node_costs.size) < 0.05] = FORBIDDEN
    pairs = [(a, b) for a in range(num) for b in range(num) if a != b and random.random() < 2.0 / num]
    tables = []
    for a, b in pairs:
        table = random.integers(-5, 40, (counts[a], counts[b]))
        kind = random.random()
        if kind < 0.3 and counts[a] == counts[b]:
            order = random.permutation(counts[a])
            table = np.where(np.arange(counts[b])[None, :] == order[:, None], table, FORBIDDEN + 7)
        elif kind < 0.6:
            table = np.where(random.random(table.shape) < 0.3, FORBIDDEN, table)
        tables.append(table.ravel())
    begin = random.integers(0, 8, num)
    usages = random.integers(0, 10, node_costs.size)
    return SelectionProblem(
        option_counts=counts,
        node_costs=node_costs,
        usages=usages,
        live_from=begin,
        live_until=begin + random.integers(0, 6, num),
        edge_nodes=np.array(pairs, np.int64).reshape(-1, 2),
        edge_costs=np.concatenate([np.zeros(0, np.int64), *tables]),
        capacity=None if random.random() < 0.2 else int(random.integers(3, 22)),
    )


def dense_problem(seed: int) -> SelectionProblem:
    """8 nodes of 3 or 4 options, most pairs joined, all overlapping in time: presolve alone decides few of these."""
    random = np.random.default_rng(1000 + seed)
    num = 8
    counts = random.integers(3, 5, num)
    pairs = np.array([(a, b) for a in range(num) for b in range(a) if random.random() < 0.7], np.int64)
    cells = int((counts[pairs[:, 0]] * counts[pairs[:, 1]]).sum())
    edge_costs = random.integers(0, 1000, cells)
    edge_costs[random.random(cells) < 0.1] = FORBIDDEN
    usages = random.integers(0, 100, int(counts.sum()))
    begin = random.integers(0, 3, num)
    return SelectionProblem(
        option_counts=counts,
        node_costs=random.integers(0, 1000, int(counts.sum())),
        usages=usages,
        live_from=begin,
        live_until=begin + random.integers(2, 5, num),
        edge_nodes=pairs,
        edge_costs=edge_costs,
        capacity=int(random.integers(150, 400)),
    )


def best_by_enumeration(problem: SelectionProblem) -> int | None:
    """The least cost of all permitted selections that fit; independent of the solver and of its checker."""
    shape = tuple(problem.option_counts.tolist())
    every = np.indices(shape, np.int64).reshape(problem.num_nodes, -1).T
    node_costs = problem.node_costs[problem.option_start[:-1] + every]
    first, second = problem.edge_nodes[:, 0], problem.edge_nodes[:, 1]
    cells = problem.edge_start[:-1] + every[:, first] * problem.option_counts[second] + every[:, second]
    costs = np.concatenate([node_costs, problem.edge_costs[cells]], axis=1)
    usages = problem.usages[problem.option_start[:-1] + every]
    permitted = (costs < FORBIDDEN).all(axis=1)
    if problem.capacity is not None:
        for time in range(15):
            live = (problem.live_from <= time) & (time < problem.live_until)
            permitted &= usages[:, live].sum(axis=1) <= problem.capacity
    return int(costs[permitted].sum(axis=1).min()) if permitted.any() else None


@pytest.mark.parametrize("family", [random_problem, dense_problem])
@pytest.mark.parametrize("seed", TRIALS)
def test_the_optimum_is_found_and_proved(family: Callable[[int], SelectionProblem], seed: int) -> None:
    problem = family(seed)
    answer = solve(problem, time_limit_s=20.0, seed=seed, threads=1)
    best = best_by_enumeration(problem)
    if best is None:
        assert answer.status == "infeasible"
        assert answer.binding_window is not None or answer.forbidden_nodes
        return
    assert (answer.status, answer.cost, answer.bound) == ("optimal", best, best)
    assert answer.choice is not None
    assert selection_cost(problem, answer.choice) == best
    assert problem.capacity is None or peak_usage(problem, answer.choice)[0] <= problem.capacity


@pytest.mark.parametrize("seed", TRIALS)
def test_presolve_keeps_the_optimum_and_the_bound_stays_below_it(seed: int) -> None:
    problem = random_problem(seed)
    best = best_by_enumeration(problem)
    try:
        reduced = presolve(problem, lambda: False)
    except (Contradiction, CapacityExceeded):
        assert best is None
        return
    found = None
    for values in itertools.product(*(range(int(size)) for size in reduced.graph.sizes)):
        choice = reduced.choice(np.array(values, np.int64))
        own = Pool(reduced, Incumbent(problem, 0.0, 1.0)).offer(np.array(values, np.int64), "test")
        if own is not None:
            assert selection_cost(problem, choice.tolist()) == own
            found = own if found is None else min(found, own)
    assert found == best
    dual = Dual(reduced, Pool(reduced, Incumbent(problem, 0.0, 1.0)))
    for _ in range(12):
        if not dual.finished:
            dual.step()
    if best is not None:
        for rounds in (0, 4):
            assert dual.prove(rounds).bound <= best
