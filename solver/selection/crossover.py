"""Combinations of good selections: small restricted problems, each solved exactly.

``cross``          keeps per class the values that the best local optima use, and the value of least reduced cost.
``neighbourhood``  frees a connected ball of classes, with their values of low reduced cost; all others stay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Ints
from solver.selection.core_milp import solve_core
from solver.selection.descent import Descents
from solver.selection.dual import Dual
from solver.selection.incumbent import Pool
from solver.selection.presolve.merge import Contradiction
from solver.selection.presolve.presolve import CapacityExceeded, cheapest, restrict, simplified

LARGEST_CELLS = 20_000
LONGEST_S = 3.0
MOST_NODES = 200
DUAL_STEPS = 60
BALL_CLASSES = 30
BALL_VALUES = 12


def cross(pool: Pool, stream: Descents, dual: Dual) -> None:
    """Solve the problem of the values that the stream's local optima and the pool's best use."""
    with pool.incumbent.lock:
        members = [values for _, values in pool.members[:6]] + list(pool.ends.values())
    members += [values for _, values in stream.optima]
    if len(members) < 2:
        return
    start = pool.reduced.graph.start[:-1]
    alive = np.zeros(pool.reduced.unary.size, np.bool_)
    for values in members:
        alive[start + values] = True
    alive[start + cheapest(dual.prove().value_bound, pool.reduced.graph.start)] = True
    _solve(pool, alive)


def neighbourhood(pool: Pool, stream: Descents, dual: Dual) -> None:
    """Solve a random ball around the pool's best exactly."""
    graph = pool.reduced.graph
    with pool.incumbent.lock:
        if not pool.members:
            return
        cost, values = pool.members[0]
    proof = dual.prove()
    alive = np.zeros(pool.reduced.unary.size, np.bool_)
    alive[graph.start[:-1] + values] = True
    permitted = proof.improving(cost)
    for c in _ball(stream, pool):
        first, last = int(graph.start[c]), int(graph.start[c + 1])
        low = first + np.argsort(proof.value_bound[first:last], kind="stable")[:BALL_VALUES]
        alive[low] |= permitted[low]
    _solve(pool, alive)


def _ball(stream: Descents, pool: Pool) -> list[int]:
    graph = pool.reduced.graph
    found = [int(stream.random.integers(graph.sizes.size))]
    for c in found:
        around: Ints = graph.adj_node[graph.adj_start[c] : graph.adj_start[c + 1]]
        for other in stream.random.permutation(around).tolist():
            if other not in found and len(found) < BALL_CLASSES:
                found.append(other)
    return found


def _solve(pool: Pool, alive: NDArray[np.bool_]) -> None:
    incumbent = pool.incumbent
    incumbent.spend(4 * pool.reduced.num_cells)
    try:
        core = simplified(restrict(pool.reduced, alive), incumbent.stopped)
    except (Contradiction, CapacityExceeded):
        return
    own = Pool(core, incumbent)
    if core.num_classes == 0:
        own.offer(np.zeros(0, np.int64), "crossover")
        return
    if core.num_cells > LARGEST_CELLS:
        return
    dual = Dual(core, own)
    for _ in range(DUAL_STEPS):
        if dual.finished or incumbent.stopped():
            break
        dual.step()
        incumbent.spend(16 * core.num_cells)
    limits = incumbent.limits(incumbent.stopped, LONGEST_S, MOST_NODES)
    answer = solve_core(core, dual.reduced_costs(), None, limits)
    incumbent.spend(200 * core.num_cells)
    if answer.values is not None:
        pool.offer(core.values_in(answer.values, pool.reduced), "crossover")
