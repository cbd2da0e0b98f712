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

from solver.selection.kernel import INTS, record
from solver.selection.problem import Integers


class Graph(NamedTuple):
    """Classes, edges and neighbours: neighbours of c are ``adj_node[adj_start[c] : adj_start[c + 1]]``."""

    sizes: Integers
    start: Integers
    edge_a: Integers
    edge_b: Integers
    edge_start: Integers
    adj_start: Integers
    adj_node: Integers
    adj_edge: Integers


class Memory(NamedTuple):
    """Usage over rows: segments of class c are ``class_seg[c] : class_seg[c + 1]``."""

    seg_class: Integers
    seg_lo: Integers
    seg_hi: Integers
    seg_start: Integers
    seg_usage: Integers
    class_seg: Integers
    slack: Integers


GRAPH = record(Graph, *[INTS] * 8)
MEMORY = record(Memory, *[INTS] * 7)


@dataclass(frozen=True)
class Reduced:
    """A presolved problem and the way back: ``constant`` is what all settled nodes cost.

    ``option_of`` holds, node after node, the option for each value of its class (``option_first[i]`` is where node i
    begins); nodes of class -1 are settled and take ``settled[i]``.
    """

    graph: Graph
    unary: Integers
    table: Integers
    memory: Memory
    row_begin: Integers
    constant: int
    node_class: Integers
    option_of: Integers
    option_first: Integers
    settled: Integers

    def expand(self, values: Integers) -> Integers:
        """int64[N]: the option of every node when class c takes ``values[c]``."""
        free = self.node_class >= 0
        choice = self.settled.copy()
        choice[free] = self.option_of[self.option_first[free] + values[self.node_class[free]]]
        return choice

    @property
    def num_classes(self) -> int:
        """C."""
        return int(self.graph.sizes.size)

    @property
    def num_rows(self) -> int:
        """R."""
        return int(self.memory.slack.size)

    def values_of(self, choice: Integers) -> Integers | None:
        """int64[C]: the class values that stand for this choice; None where one of them was removed."""
        free = np.flatnonzero(self.node_class >= 0)
        if (choice[self.node_class < 0] != self.settled[self.node_class < 0]).any():
            return None
        values = np.zeros(self.num_classes, np.int64)
        sizes = self.graph.sizes[self.node_class[free]]
        node = np.repeat(free, sizes)
        position = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        match = self.option_of[self.option_first[node] + position] == choice[node]
        found = np.zeros(self.node_class.size, np.bool_)
        found[node[match]] = True
        if not found[free].all():
            return None
        values[self.node_class[node[match]]] = position[match]
        return values if (self.expand(values) == choice).all() else None
