"""Splits for a search tree: two halves of one class's values, between which a relaxation is undecided.

Excess       what a value costs above the bound (``exact_bound``); gap = incumbent - bound.
Memory       the relaxation mixes values that use little with values that use much.  Among the values of excess <=
             ``MEMORY_SHARE`` gap, w(v) = usage of v at the prices of the rows; the split runs through the largest step
             between neighbouring levels of w.  Best are the classes with the widest w.
Clusters     with no memory at stake it mixes values that get on with different neighbours.  k0 is the class's best
             value, d(v) = mean over the entries of its edges of |row of v - row of k0| (entries clipped at 2 gap), k1
             the value of excess <= ``CLUSTER_SHARE`` gap with the largest d; the split gives each value to the nearer
             of k0 and k1.  Best are the classes with the largest d(k1) x number of edges.
One value against the rest is no split worth making: the rest hardly changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Array
from solver.selection.exact_bound import ReducedCosts
from solver.selection.prices import add_prices
from solver.selection.reduced import Reduced

MEMORY_SHARE = 0.05
CLUSTER_SHARE = 0.03
MEMORY_SPLITS = 4
CLUSTER_SPLITS = 2


@dataclass(frozen=True)
class Split:
    """``alive`` (bool[U]) of the first half: all classes but one keep their values; ``other`` of the second half."""

    class_: int
    alive: NDArray[np.bool_]
    other: NDArray[np.bool_]


def candidates(reduced: Reduced, excess: Array, costs: ReducedCosts, gap: float) -> list[Split]:
    """The most promising splits; ``excess`` is real[U]."""
    found = _memory_splits(reduced, excess, costs.price, MEMORY_SHARE * gap)
    found += _cluster_splits(reduced, excess, costs.table, gap)
    return found if found else _widest(reduced, excess)


def _memory_splits(reduced: Reduced, excess: Array, price: Array, near: float) -> list[Split]:
    graph = reduced.graph
    paid = np.zeros(reduced.unary.size)
    add_prices(graph, reduced.memory, np.zeros(reduced.unary.size), price, paid)
    ranked: list[tuple[float, int, float]] = []
    for c in range(reduced.num_classes):
        mine = slice(graph.start[c], graph.start[c + 1])
        levels = np.unique(paid[mine][excess[mine] <= near])
        if levels.size > 1 and levels[-1] > levels[0]:
            step = int(np.argmax(np.diff(levels)))
            ranked.append((-float(levels[-1] - levels[0]), c, float(levels[step] + levels[step + 1]) / 2))
    ranked.sort()
    return [_split(reduced, c, paid <= threshold) for _, c, threshold in ranked[:MEMORY_SPLITS]]


def _cluster_splits(reduced: Reduced, excess: Array, table: Array, gap: float) -> list[Split]:
    graph = reduced.graph
    ranked: list[tuple[float, int, NDArray[np.bool_]]] = []
    for c in range(reduced.num_classes):
        mine = slice(graph.start[c], graph.start[c + 1])
        near = np.flatnonzero(excess[mine] <= CLUSTER_SHARE * gap)
        degree = int(graph.adj_start[c + 1] - graph.adj_start[c])
        if near.size < 2 or degree == 0:
            continue
        rows = _rows_of(reduced, c, table, 2 * gap)
        best = int(np.argmin(excess[mine]))
        from_best = np.abs(rows - rows[best]).mean(axis=1)
        rival = int(near[np.argmax(from_best[near])])
        if from_best[rival] <= 0:
            continue
        from_rival = np.abs(rows - rows[rival]).mean(axis=1)
        ranked.append((-float(from_best[rival]) * degree, c, from_best <= from_rival))
    ranked.sort(key=lambda entry: entry[:2])
    found = []
    for _, c, first in ranked[:CLUSTER_SPLITS]:
        chosen = np.ones(reduced.unary.size, np.bool_)
        chosen[graph.start[c] : graph.start[c + 1]] = first
        found.append(_split(reduced, c, chosen))
    return found


def _rows_of(reduced: Reduced, c: int, table: Array, most: float) -> Array:
    """real[size of c, sum of its neighbours' sizes]: what each value of c pays on all its edges."""
    graph, parts = reduced.graph, []
    for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
        e = int(graph.adj_edge[p])
        entries = table[graph.edge_start[e] : graph.edge_start[e + 1]]
        shaped = entries.reshape(graph.sizes[graph.edge_a[e]], graph.sizes[graph.edge_b[e]])
        parts.append(shaped if graph.edge_a[e] == c else shaped.T)
    return np.minimum(np.concatenate(parts, axis=1), most)


def _widest(reduced: Reduced, excess: Array) -> list[Split]:
    """Where nothing is close to the bound: the class with the most values, its better half against the other."""
    graph = reduced.graph
    c = int(np.argmax(graph.sizes))
    mine = slice(graph.start[c], graph.start[c + 1])
    chosen = np.ones(reduced.unary.size, np.bool_)
    chosen[mine] = np.argsort(np.argsort(excess[mine], kind="stable")) < (graph.sizes[c] + 1) // 2
    return [_split(reduced, c, chosen)]


def _split(reduced: Reduced, c: int, chosen: NDArray[np.bool_]) -> Split:
    """The class's chosen values against its other ones."""
    graph = reduced.graph
    mine = slice(graph.start[c], graph.start[c + 1])
    alive, other = np.ones(reduced.unary.size, np.bool_), np.ones(reduced.unary.size, np.bool_)
    alive[mine], other[mine] = chosen[mine], ~chosen[mine]
    return Split(c, alive, other)
