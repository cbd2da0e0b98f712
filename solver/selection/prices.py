"""Costs of values when memory has a price: Lagrangian terms over the rows, and usage of an assignment.

priced[c, v] = unary[c, v] + sum over segments s of c:  usage_s(v) * sum of price[r] for seg_lo <= r < seg_hi
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solver.arrays import Array, Ints
from solver.selection.kernel import FLAG, INT, INTS, NOTHING, REALS, kernel, record
from solver.selection.presolve.classes import NEVER
from solver.selection.reduced import GRAPH, MEMORY, Graph, Memory, Reduced

NEVER_REAL = 1e17
"""A forbidden pair in real numbers: above every sum that a kernel meets, small enough to keep its last digits."""


class Costs(NamedTuple):
    """Unaries and tables in real numbers."""

    unary: Array
    table: Array


COSTS = record(Costs, REALS, REALS)


def real_costs(reduced: Reduced) -> Costs:
    """The tables in real numbers, forbidden pairs as NEVER_REAL."""
    table = np.where(reduced.table >= NEVER, NEVER_REAL, reduced.table).astype(np.float64)
    return Costs(reduced.unary.astype(np.float64), table)


@kernel(NOTHING(GRAPH, MEMORY, REALS, REALS, REALS))
def add_prices(graph: Graph, memory: Memory, unary: Array, price: Array, priced: Array) -> None:
    """Fill ``priced``."""
    before = np.zeros(price.size + 1)
    for r in range(price.size):
        before[r + 1] = before[r] + price[r]
    for u in range(priced.size):
        priced[u] = unary[u]
    for s in range(memory.seg_class.size):
        weight = before[memory.seg_hi[s]] - before[memory.seg_lo[s]]
        if weight != 0.0:
            first = graph.start[memory.seg_class[s]]
            for v in range(graph.sizes[memory.seg_class[s]]):
                priced[first + v] += weight * memory.seg_usage[memory.seg_start[s] + v]


@kernel(NOTHING(MEMORY, INTS, INTS))
def fill_usage(memory: Memory, values: Ints, usage: Ints) -> None:
    """Usage of every row."""
    usage[:] = 0
    over = np.int64(0)
    for s in range(memory.seg_class.size):
        used = memory.seg_usage[memory.seg_start[s] + values[memory.seg_class[s]]]
        if used != 0:
            usage[memory.seg_lo[s]] += used
            if memory.seg_hi[s] < usage.size:
                usage[memory.seg_hi[s]] -= used
    for r in range(usage.size):
        over += usage[r]
        usage[r] = over


@kernel(FLAG(INTS, INTS))
def fits(usage: Ints, slack: Ints) -> bool:
    """Whether every row holds its usage."""
    for r in range(usage.size):  # noqa: SIM110  # compiled: no generators
        if usage[r] > slack[r]:
            return False
    return True


@kernel(INT(GRAPH, INTS, INTS, INTS))
def exact_cost_of(graph: Graph, unary: Ints, table: Ints, values: Ints) -> int:
    """What these values cost, NEVER where a pair is forbidden."""
    total = np.int64(0)
    for c in range(values.size):
        total += unary[graph.start[c] + values[c]]
    for e in range(graph.edge_a.size):
        a, b = graph.edge_a[e], graph.edge_b[e]
        cost = table[graph.edge_start[e] + values[a] * graph.sizes[b] + values[b]]
        if cost >= NEVER:
            return np.int64(NEVER)  # type: ignore[return-value]
        total += cost
    return total  # type: ignore[return-value]
