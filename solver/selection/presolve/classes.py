"""Classes of nodes that move together: exact shrinking of the tables by what is forbidden.

State        classes c with values v, unary[c, v], pair tables; every node belongs to one class, and its option is a
             function of the class's value.  At first each node is a class of its own.
One pass
    (1) ``narrowing``   drop values without a permitted partner on some edge, until nothing changes (arc consistency)
    (2) ``fold``        an edge with one live row, or with table[k, l] = r_k + c_l, moves into the unaries; an edge that
                        permits exactly one partner per value (a bijection) moves its costs into one unary and ...
    (3) ``unite``       ... joins its two classes; a cycle of bijections that contradicts itself forbids values
    (4) ``renumber``    classes, values and edges are numbered anew; parallel edges are added up

Every permitted selection keeps its cost (plus a constant), and only selections that use a forbidden cost are lost.
Internally a forbidden value is exactly ``NEVER`` and sums saturate there; real sums stay below 2^60.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Ints
from solver.selection.kernel import FLAGS, INT, INTS, NOTHING, kernel

NEVER = 2**61
"""A forbidden cost inside the solver: twice it still fits in 64 bits."""

KEPT, FOLDED, BIJECTION = 0, 1, 2


@dataclass(frozen=True)
class Classes:
    """Flat tables over classes; flat option j of a node stands for the class value ``node_value[j]``, or -1 (dead)."""

    sizes: Ints
    unary: Ints
    edge_a: Ints
    edge_b: Ints
    table: Ints
    option_counts: Ints
    node_class: Ints
    node_value: Ints

    @property
    def start(self) -> Ints:
        """int64[C + 1]: where the values of each class begin."""
        return offsets(self.sizes)

    @property
    def edge_start(self) -> Ints:
        """int64[E + 1]: where the table of each edge begins."""
        return offsets(self.sizes[self.edge_a] * self.sizes[self.edge_b])


def offsets(sizes: Ints) -> Ints:
    """0 and the running sums."""
    result = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=result[1:])
    return result


@kernel(NOTHING(INT, INTS, INTS, INTS, INTS, INTS))
def fill_adjacency(num: int, edge_a: Ints, edge_b: Ints, adj_start: Ints, adj_node: Ints, adj_edge: Ints) -> None:
    """Neighbours of each class in the order of the edges; ``adj_start`` has num + 1 entries."""
    adj_start[:] = 0
    for e in range(edge_a.size):
        adj_start[edge_a[e] + 1] += 1
        adj_start[edge_b[e] + 1] += 1
    for c in range(num):
        adj_start[c + 1] += adj_start[c]
    fill = adj_start[:num].copy()
    for e in range(edge_a.size):
        a, b = edge_a[e], edge_b[e]
        adj_node[fill[a]], adj_edge[fill[a]] = b, e
        adj_node[fill[b]], adj_edge[fill[b]] = a, e
        fill[a] += 1
        fill[b] += 1


def adjacency(num: int, edge_a: Ints, edge_b: Ints) -> tuple[Ints, Ints, Ints]:
    """``adj_start``, ``adj_node`` and ``adj_edge`` of a graph."""
    start = np.zeros(num + 1, np.int64)
    node = np.zeros(2 * edge_a.size, np.int64)
    edge = np.zeros(2 * edge_a.size, np.int64)
    fill_adjacency(num, edge_a, edge_b, start, node, edge)
    return start, node, edge


@kernel(INT(INTS, INT, INT, INT, INT, INT, INT, FLAGS, INTS))
def edge_kind(
    table: Ints,
    cells: int,
    first_a: int,
    size_a: int,
    first_b: int,
    size_b: int,
    never: int,
    alive: NDArray[np.bool_],
    partner: Ints,
) -> int:
    """Whether an edge is a bijection (``partner[k]`` filled), a sum of a row and a column term, or neither."""
    count_a, count_b, forbidden = 0, 0, 0
    base_k, base_m = -1, -1
    for m in range(size_b):
        if alive[first_b + m]:
            count_b += 1
            if base_m < 0:
                base_m = m
    unique = True
    taken = np.zeros(size_b, np.bool_)
    for k in range(size_a):
        if not alive[first_a + k]:
            continue
        count_a += 1
        if base_k < 0:
            base_k = k
        permitted = 0
        for m in range(size_b):
            if alive[first_b + m]:
                if table[cells + k * size_b + m] < never:
                    permitted += 1
                    partner[k] = m
                else:
                    forbidden += 1
        if permitted != 1 or taken[partner[k]]:
            unique = False
        else:
            taken[partner[k]] = True
    if count_a == 1 or count_b == 1:
        return FOLDED
    if unique and count_a == count_b:
        return BIJECTION
    if forbidden > 0:
        return KEPT
    corner = table[cells + base_k * size_b + base_m]
    for k in range(size_a):
        if alive[first_a + k]:
            rise = table[cells + k * size_b + base_m] - corner
            for m in range(size_b):
                if alive[first_b + m] and table[cells + k * size_b + m] - table[cells + base_k * size_b + m] != rise:
                    return KEPT
    return FOLDED


@kernel(NOTHING(INTS, INTS, INTS, INTS, INTS, INT, FLAGS, INTS, INTS, INTS))
def fold(
    start: Ints,
    edge_a: Ints,
    edge_b: Ints,
    edge_start: Ints,
    table: Ints,
    never: int,
    alive: NDArray[np.bool_],
    unary: Ints,
    kinds: Ints,
    partners: Ints,
) -> None:
    """Move foldable edges into ``unary``; a bijection's partners go to ``partners`` from ``edge_start`` on."""
    for e in range(edge_a.size):
        a, b = edge_a[e], edge_b[e]
        first_a, first_b = start[a], start[b]
        size_a, size_b = start[a + 1] - first_a, start[b + 1] - first_b
        partner = partners[edge_start[e] : edge_start[e] + size_a]
        kind = edge_kind(table, edge_start[e], first_a, size_a, first_b, size_b, never, alive, partner)
        kinds[e] = kind
        if kind == KEPT:
            continue
        base_k, base_m = -1, -1
        for k in range(size_a - 1, -1, -1):
            if alive[first_a + k]:
                base_k = k
        for m in range(size_b - 1, -1, -1):
            if alive[first_b + m]:
                base_m = m
        for k in range(size_a):
            if alive[first_a + k]:
                m = partner[k] if kind == BIJECTION else base_m
                unary[first_a + k] += table[edge_start[e] + k * size_b + m]
        if kind == FOLDED:
            corner = table[edge_start[e] + base_k * size_b + base_m]
            for m in range(size_b):
                if alive[first_b + m]:
                    unary[first_b + m] += table[edge_start[e] + base_k * size_b + m] - corner


@kernel(INT(INT, INTS, INTS, INTS))
def root_of(c: int, start: Ints, parent: Ints, up: Ints) -> int:
    """The representative of c; afterwards ``up`` maps c's values to the representative's directly."""
    root = c
    while parent[root] != root:
        root = parent[root]
    # Walk again from the class nearest the root downwards would need a stack; two hops at a time do without.
    while parent[c] != root and parent[c] != c:
        above = parent[c]
        for k in range(start[c], start[c + 1]):
            if up[k] >= 0:
                up[k] = up[start[above] + up[k]]
        parent[c] = parent[above]
    return int(root)


@kernel(NOTHING(INTS, INTS, INTS, INTS, INTS, INTS, FLAGS, INTS, INTS, FLAGS))
def unite(
    start: Ints,
    edge_a: Ints,
    edge_b: Ints,
    edge_start: Ints,
    kinds: Ints,
    partners: Ints,
    alive: NDArray[np.bool_],
    parent: Ints,
    up: Ints,
    contradicted: NDArray[np.bool_],
) -> None:
    """Join classes over bijections: ``up[value of c]`` = value of its parent; a contradictory root value is marked."""
    members = np.ones(parent.size, np.int64)
    for e in range(edge_a.size):
        if kinds[e] != BIJECTION:
            continue
        a, b = edge_a[e], edge_b[e]
        root_a, root_b = root_of(a, start, parent, up), root_of(b, start, parent, up)
        if root_a != root_b and members[root_a] < members[root_b]:
            low, high = root_a, root_b
        else:
            low, high = root_b, root_a
        for k in range(start[a + 1] - start[a]):
            if not alive[start[a] + k]:
                continue
            value_a = up[start[a] + k]
            value_b = up[start[b] + partners[edge_start[e] + k]]
            if root_a == root_b:
                if value_a != value_b:
                    contradicted[start[root_a] + value_a] = True
                    contradicted[start[root_a] + value_b] = True
            elif low == root_a:
                up[start[root_a] + value_a] = value_b
            else:
                up[start[root_b] + value_b] = value_a
        if root_a != root_b:
            parent[low] = high
            members[high] += members[low]


@kernel(NOTHING(INTS, INTS, FLAGS, INTS, INTS, INTS, INTS))
def renumber_values(
    start: Ints,
    unary: Ints,
    alive: NDArray[np.bool_],
    new_class: Ints,
    new_value: Ints,
    new_start: Ints,
    new_unary: Ints,
) -> None:
    """Add the unaries of joined classes; ``new_value`` of a dead value is -1."""
    for c in range(start.size - 1):
        for k in range(start[c], start[c + 1]):
            if not alive[k]:
                continue
            target = new_start[new_class[c]] + new_value[k]
            if unary[k] >= NEVER or new_unary[target] >= NEVER:
                new_unary[target] = NEVER
            else:
                new_unary[target] += unary[k]


@kernel(NOTHING(INTS, INTS, INTS, INTS, INTS, INTS, INT, INTS, INTS, INTS))
def add_tables(
    start: Ints,
    edge_a: Ints,
    edge_b: Ints,
    edge_start: Ints,
    table: Ints,
    new_class: Ints,
    never: int,
    new_value: Ints,
    new_base: Ints,
    new_table: Ints,
) -> None:
    """Add each kept edge to the table that begins at ``new_base[e]`` (-1: dropped); the lower class has the rows.

    ``new_base`` holds two numbers an edge: where its table begins and how many columns that has.
    """
    for e in range(edge_a.size):
        base, columns = new_base[2 * e], new_base[2 * e + 1]
        if base < 0:
            continue
        a, b = edge_a[e], edge_b[e]
        size_b = start[b + 1] - start[b]
        for k in range(start[a + 1] - start[a]):
            row = new_value[start[a] + k]
            if row < 0:
                continue
            for m in range(size_b):
                column = new_value[start[b] + m]
                if column < 0:
                    continue
                cell = base + (row * columns + column if new_class[a] < new_class[b] else column * columns + row)
                cost = table[edge_start[e] + k * size_b + m]
                if cost >= never or new_table[cell] >= NEVER:
                    new_table[cell] = NEVER
                else:
                    new_table[cell] += cost


@kernel(NOTHING(INTS, INTS, INTS, INTS, INT, INTS, INTS, INTS))
def add_diagonals(
    start: Ints,
    classes: Ints,
    edge_start: Ints,
    table: Ints,
    never: int,
    new_value: Ints,
    target: Ints,
    new_unary: Ints,
) -> None:
    """Edges inside one class cost what their joint value costs; classes[2e], classes[2e + 1] are the old ends.

    ``target[e]`` is where the joined class's values begin.
    """
    for e in range(target.size):
        a, b = classes[2 * e], classes[2 * e + 1]
        size_b = start[b + 1] - start[b]
        for k in range(start[a + 1] - start[a]):
            for m in range(size_b):
                value = new_value[start[a] + k]
                if value < 0 or value != new_value[start[b] + m]:
                    continue
                cost = table[edge_start[e] + k * size_b + m]
                if cost >= never or new_unary[target[e] + value] >= NEVER:
                    new_unary[target[e] + value] = NEVER
                else:
                    new_unary[target[e] + value] += cost
