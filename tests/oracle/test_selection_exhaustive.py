"""The selection solver against every selection there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from solver.selection.check import peak_usage, selection_cost
from solver.selection.dual import Dual
from solver.selection.incumbent import Incumbent, Pool
from solver.selection.presolve.merge import Contradiction
from solver.selection.presolve.presolve import CapacityExceeded, presolve
from solver.selection.problem import FORBIDDEN, SelectionProblem
from solver.selection.solve import solve

TRIALS = range(120)


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


def best_by_enumeration(problem: SelectionProblem) -> int | None:
    """The least cost of all permitted selections that fit; independent of the solver and of its checker."""
    best = None
    tables = [
        problem.edge_costs[a:b].reshape(problem.option_counts[i], problem.option_counts[j])
        for (i, j), a, b in zip(problem.edge_nodes, problem.edge_start, problem.edge_start[1:], strict=False)
    ]
    for choice in itertools.product(*(range(int(count)) for count in problem.option_counts)):
        parts = [int(problem.node_costs[problem.option_start[i] + k]) for i, k in enumerate(choice)]
        parts += [int(t[choice[a], choice[b]]) for t, (a, b) in zip(tables, problem.edge_nodes, strict=True)]
        if max(parts) >= FORBIDDEN or (best is not None and sum(parts) >= best):
            continue
        used = [
            sum(
                int(problem.usages[problem.option_start[i] + k])
                for i, k in enumerate(choice)
                if problem.live_from[i] <= time < problem.live_until[i]
            )
            for time in range(15)
        ]
        if problem.capacity is None or max(used) <= problem.capacity:
            best = sum(parts)
    return best


@pytest.mark.parametrize("seed", TRIALS)
def test_the_optimum_is_found_and_proved(seed: int) -> None:
    problem = random_problem(seed)
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
        reduced = presolve(problem)
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
