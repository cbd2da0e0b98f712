"""Lower bounds of the cost with priced memory: sequential tree-reweighted message passing on the pair tables.

Messages     m[e -> b](l) and m[e -> a](k) move cost between an edge and its ends; any messages give the lower bound
             sum_c min_v (priced[c, v] + incoming messages)  +  sum_e min_(k, l) (table - m[e -> a](k) - m[e -> b](l))
Sweep        classes in order, then in reverse; a class shares its reduced costs equally among the edges ahead
             (gamma = 1 / max(edges ahead, edges behind)), which never lowers the bound (Kolmogorov, "Convergent
             tree-reweighted message passing for energy minimization", TPAMI 2006, section 5).
Layout       ``message_start[2e]`` begins m[e -> b], ``message_start[2e + 1]`` begins m[e -> a].
"""

from __future__ import annotations

import numpy as np

from solver.arrays import Array, Ints
from solver.selection.kernel import INT, INTS, NOTHING, REAL, REALS, kernel
from solver.selection.presolve.classes import offsets
from solver.selection.reduced import GRAPH, Graph

LARGEST = 1e300


def message_start(graph: Graph) -> Ints:
    """int64[2E + 1]: where each message begins."""
    sizes = np.empty(2 * graph.edge_a.size, np.int64)
    sizes[0::2], sizes[1::2] = graph.sizes[graph.edge_b], graph.sizes[graph.edge_a]
    return offsets(sizes)


@kernel(REAL(REALS, INT, REALS, INT, REALS, INT, INT))
def send(share: Array, size: int, table: Array, first: int, messages: Array, out: int, out_size: int) -> float:
    """Message from the rows of a table to its columns, least entry taken out and returned."""
    least = LARGEST
    for m in range(out_size):
        messages[out + m] = LARGEST
    for k in range(size):
        given, row = share[k], first + k * out_size
        for m in range(out_size):
            messages[out + m] = min(messages[out + m], given + table[row + m])
    for m in range(out_size):
        least = min(least, messages[out + m])
    for m in range(out_size):
        messages[out + m] -= least
    return least


@kernel(REAL(REALS, INT, REALS, INT, REALS, INT, INT))
def send_to_rows(share: Array, size: int, table: Array, first: int, messages: Array, out: int, out_size: int) -> float:
    """Message from the columns of a table to its rows, least entry taken out and returned."""
    least = LARGEST
    for m in range(out_size):
        row = first + m * size
        best = LARGEST
        for k in range(size):
            best = min(best, share[k] + table[row + k])
        messages[out + m] = best
        least = min(least, best)
    for m in range(out_size):
        messages[out + m] -= least
    return least


@kernel(INT(GRAPH, REALS, REALS, INTS, REALS, INTS, INT, REALS))
def decode(
    graph: Graph,
    priced: Array,
    table: Array,
    start: Ints,
    messages: Array,
    values: Ints,
    c: int,
    scores: Array,
) -> int:
    """The best value of c given the classes before it, and the messages of those after it."""
    size = graph.sizes[c]
    for k in range(size):
        scores[k] = priced[graph.start[c] + k]
    for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
        other, e = graph.adj_node[p], graph.adj_edge[p]
        is_a = graph.edge_a[e] == c
        if other < c:
            first = graph.edge_start[e]
            for k in range(size):
                cell = k * graph.sizes[other] + values[other] if is_a else values[other] * size + k
                scores[k] += table[first + cell]
        else:
            incoming = start[2 * e + 1] if is_a else start[2 * e]
            for k in range(size):
                scores[k] += messages[incoming + k]
    best = 0
    for k in range(1, size):
        if scores[k] < scores[best]:
            best = k
    return best


@kernel(REAL(GRAPH, REALS, REALS, INTS, REALS, INT, INTS))
def sweep(
    graph: Graph,
    priced: Array,
    table: Array,
    start: Ints,
    messages: Array,
    rounds: int,
    values: Ints,
) -> float:
    """``rounds`` times forward and back; the bound of the last way back; ``values`` decoded on the last way forward."""
    num = graph.sizes.size
    largest = np.int64(1)
    for c in range(num):
        largest = max(largest, graph.sizes[c])
    height, share = np.empty(largest), np.empty(largest)
    bound = 0.0
    for turn in range(2 * rounds):
        forward = turn % 2 == 0
        bound = 0.0
        for position in range(num):
            c = position if forward else num - 1 - position
            size, ahead, behind = graph.sizes[c], 0, 0
            for k in range(size):
                height[k] = priced[graph.start[c] + k]
            for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
                e = graph.adj_edge[p]
                if graph.adj_node[p] > c:
                    ahead += 1
                else:
                    behind += 1
                incoming = start[2 * e + 1] if graph.edge_a[e] == c else start[2 * e]
                for k in range(size):
                    height[k] += messages[incoming + k]
            if turn == 2 * rounds - 2:
                values[c] = decode(graph, priced, table, start, messages, values, c, share)
            if not forward:
                least = height[0]
                for k in range(1, size):
                    least = min(least, height[k])
                bound += least
                for k in range(size):
                    height[k] -= least
            gamma = 1.0 / max(ahead, behind, 1)
            for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
                other, e = graph.adj_node[p], graph.adj_edge[p]
                if (other < c) == forward:
                    continue
                is_a = graph.edge_a[e] == c
                incoming = start[2 * e + 1] if is_a else start[2 * e]
                out = start[2 * e] if is_a else start[2 * e + 1]
                for k in range(size):
                    share[k] = gamma * height[k] - messages[incoming + k]
                if is_a:
                    taken = send(share, size, table, graph.edge_start[e], messages, out, graph.sizes[other])
                else:
                    taken = send_to_rows(share, size, table, graph.edge_start[e], messages, out, graph.sizes[other])
                if not forward:
                    bound += taken
    return bound


@kernel(NOTHING(GRAPH, REALS, INTS, REALS, REALS))
def shares_from_messages(graph: Graph, priced: Array, start: Ints, messages: Array, shares: Array) -> None:
    """What each class puts on each of its edges when its reduced costs are spread equally (layout of messages)."""
    for c in range(graph.sizes.size):
        degree = graph.adj_start[c + 1] - graph.adj_start[c]
        if degree == 0:
            continue
        for k in range(graph.sizes[c]):
            height = priced[graph.start[c] + k]
            for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
                e = graph.adj_edge[p]
                height += messages[(start[2 * e + 1] if graph.edge_a[e] == c else start[2 * e]) + k]
            for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
                e = graph.adj_edge[p]
                slot = (start[2 * e + 1] if graph.edge_a[e] == c else start[2 * e]) + k
                shares[slot] = height / degree - messages[slot]


@kernel(NOTHING(GRAPH, REALS, REALS, INTS, REALS, INT))
def diffuse(graph: Graph, priced: Array, table: Array, start: Ints, shares: Array, rounds: int) -> None:
    """Even out min-marginals: each class takes back its shares and spreads them so that all its edges agree."""
    num = graph.sizes.size
    largest, widest = np.int64(1), np.int64(1)
    for c in range(num):
        largest = max(largest, graph.sizes[c])
        widest = max(widest, graph.adj_start[c + 1] - graph.adj_start[c])
    least = np.empty((widest, largest))
    height = np.empty(largest)
    for turn in range(rounds):
        for position in range(num):
            c = position if turn % 2 == 0 else num - 1 - position
            size, degree = graph.sizes[c], graph.adj_start[c + 1] - graph.adj_start[c]
            if degree == 0:
                continue
            for k in range(size):
                height[k] = priced[graph.start[c] + k]
            for z in range(degree):
                e = graph.adj_edge[graph.adj_start[c] + z]
                other = graph.sizes[graph.adj_node[graph.adj_start[c] + z]]
                first = graph.edge_start[e]
                row = least[z]
                if graph.edge_a[e] == c:
                    for k in range(size):
                        best = LARGEST
                        for m in range(other):
                            best = min(best, table[first + k * other + m] + shares[start[2 * e] + m])
                        row[k] = best
                else:
                    for k in range(size):
                        row[k] = LARGEST
                    for m in range(other):
                        given = shares[start[2 * e + 1] + m]
                        for k in range(size):
                            row[k] = min(row[k], table[first + m * size + k] + given)
                for k in range(size):
                    height[k] += row[k]
            for z in range(degree):
                e = graph.adj_edge[graph.adj_start[c] + z]
                slot = start[2 * e + 1] if graph.edge_a[e] == c else start[2 * e]
                for k in range(size):
                    shares[slot + k] = height[k] / degree - least[z, k]
