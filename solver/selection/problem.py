"""The selection problem: one option for each node.

Given        nodes i with options k = 0 .. K_i - 1, edges (a, b) between nodes, and a capacity over time.
Variables    x_i in {0 .. K_i - 1}: the option of node i.
Objective    minimise  sum_i node_cost[i, x_i]  +  sum_(a,b) edge_cost[a, b][x_a, x_b]
Constraint   (1) for every time t:  sum over nodes live at t of usage[i, x_i]  <=  capacity

A node is live at t when ``live_from[i] <= t < live_until[i]``; an empty interval uses nothing.  A cost of
``FORBIDDEN`` or more may not be chosen.  Parallel edges add up.  All values are integers, so that an answer can be
re-proved exactly (``solver.selection.check``).

Letters of shapes: N nodes, V = sum of K_i, E edges, C = sum over edges of K_a K_b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solver.arrays import Ints

FORBIDDEN = 10**18
"""From here on a cost says "never": large enough for any sum of real costs, and a few of them fit in 64 bits."""


class InvalidSelection(ValueError):
    """The tables contradict each other; the message says where and how to repair it."""


@dataclass(frozen=True)
class SelectionProblem:
    """Tables of a selection problem, flat: options of node i are ``option_start[i] : option_start[i + 1]``.

    Args:
        option_counts: int64[N], K_i >= 1.
        node_costs: int64[V].
        usages: int64[V], >= 0.
        live_from: int64[N].
        live_until: int64[N].
        edge_nodes: int64[E, 2], two different nodes each.
        edge_costs: int64[C], row-major K_a x K_b, edge after edge.
        capacity: units of usage; None where nothing limits it.
        node_names: what errors and explanations call the nodes; empty for ``node 0``, ``node 1``, ..
    """

    option_counts: Ints
    node_costs: Ints
    usages: Ints
    live_from: Ints
    live_until: Ints
    edge_nodes: Ints
    edge_costs: Ints
    capacity: int | None
    node_names: tuple[str, ...] = ()

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.option_counts.size)

    @property
    def num_edges(self) -> int:
        """E."""
        return int(self.edge_nodes.shape[0])

    @cached_property
    def option_start(self) -> Ints:
        """int64[N + 1]: where the options of each node begin."""
        return np.concatenate([[0], np.cumsum(self.option_counts)]).astype(np.int64)

    @cached_property
    def edge_start(self) -> Ints:
        """int64[E + 1]: where the table of each edge begins."""
        cells = self.option_counts[self.edge_nodes[:, 0]] * self.option_counts[self.edge_nodes[:, 1]]
        return np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)

    def name(self, node: int) -> str:
        """What a message calls this node."""
        return self.node_names[node] if self.node_names else f"node {node}"
