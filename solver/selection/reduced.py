"""What is left after presolve: classes with values, pair tables, and usage over the rows that can bind.

Value v of class c costs ``unary[start[c] + v]``; edge e costs ``table[edge_start[e] + v_a * sizes[b] + v_b]``, where
``NEVER`` marks a forbidden pair.  Segment s adds ``seg_usage[seg_start[s] + v]`` >= 0 to the rows
``seg_lo[s] <= r < seg_hi[s]`` when its class ``seg_class[s]`` takes v; row r holds at most ``slack[r]``.

Letters of shapes: C classes, U = sum of their sizes, E edges, S segments (sorted by class), R rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solver.arrays import Ints
from solver.selection.kernel import INTS, record


class Graph(NamedTuple):
    """Classes, edges and neighbours: neighbours of c are ``adj_node[adj_start[c] : adj_start[c + 1]]``."""

    sizes: Ints
    start: Ints
    edge_a: Ints
    edge_b: Ints
    edge_start: Ints
    adj_start: Ints
    adj_node: Ints
    adj_edge: Ints


class Memory(NamedTuple):
    """Usage over rows: segments of class c are ``class_seg[c] : class_seg[c + 1]``."""

    seg_class: Ints
    seg_lo: Ints
    seg_hi: Ints
    seg_start: Ints
    seg_usage: Ints
    class_seg: Ints
    slack: Ints


GRAPH = record(Graph, *[INTS] * 8)
MEMORY = record(Memory, *[INTS] * 7)


@dataclass(frozen=True)
class Elimination:
    """A class that takes the best answer to its neighbours: ``best[v of first, v of second]`` (fewer axes if fewer)."""

    eliminated: int
    neighbours: tuple[int, ...]
    best: Ints


@dataclass(frozen=True)
class Reduced:
    """A smaller problem and the way back to the one above it, whose classes (or nodes) are called parents here.

    ``constant`` is what everything settled costs, from the top down.  ``option_of`` holds, parent after parent from
    ``option_first`` on, the parent's value for each value of its class; parents of class -1 are settled and take
    ``settled``; ``eliminations`` (in the order in which they were made) then answer to the others.
    """

    graph: Graph
    unary: Ints
    table: Ints
    memory: Memory
    row_begin: Ints
    row_end: Ints
    constant: int
    node_class: Ints
    option_of: Ints
    option_first: Ints
    settled: Ints
    eliminations: tuple[Elimination, ...] = ()
    above: Reduced | None = None

    @property
    def num_classes(self) -> int:
        """C."""
        return int(self.graph.sizes.size)

    @property
    def num_rows(self) -> int:
        """R."""
        return int(self.memory.slack.size)

    @property
    def num_cells(self) -> int:
        """Entries of all tables."""
        return int(self.table.size)

    def parent_values(self, values: Ints) -> Ints:
        """The parents' values when class c takes ``values[c]``."""
        free = self.node_class >= 0
        result = self.settled.copy()
        result[free] = self.option_of[self.option_first[free] + values[self.node_class[free]]]
        for step in reversed(self.eliminations):
            result[step.eliminated] = step.best[tuple(int(result[n]) for n in step.neighbours)]
        return result

    def values_in(self, values: Ints, ancestor: Reduced) -> Ints:
        """int64[C of ancestor]: these values in the terms of a problem further up."""
        here: Reduced | None = self
        while here is not None and here is not ancestor:
            values, here = here.parent_values(values), here.above
        return values

    def choice(self, values: Ints) -> Ints:
        """int64[N]: the option of every node of the whole problem."""
        above = self.parent_values(values)
        return above if self.above is None else self.above.choice(above)

    def values_of(self, choice: Ints) -> Ints | None:
        """int64[C]: the values that stand for this choice of all nodes; None where one of them was removed."""
        parents = choice if self.above is None else self.above.values_of(choice)
        return None if parents is None else self.values_of_parents(parents)

    def values_of_parents(self, parents: Ints) -> Ints | None:
        """int64[C]: the values that stand for these values of the parents; None where one of them was removed."""
        free = np.flatnonzero(self.node_class >= 0)
        sizes = self.graph.sizes[self.node_class[free]]
        parent = np.repeat(free, sizes)
        value = np.arange(int(sizes.sum()), dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        match = self.option_of[self.option_first[parent] + value] == parents[parent]
        if int(match.sum()) < free.size:
            return None
        values = np.zeros(self.num_classes, np.int64)
        values[self.node_class[parent[match]]] = value[match]
        agreed = values[self.node_class[parent[match]]] == value[match]
        return values if agreed.all() else None
