"""The first prices and messages of a smaller problem: those of the problem that it was made from.

Step by step (``Reduced.above``), in the order in which a step was made:
(1) a class c that answers to a and b leaves its messages to the edge between them: what came to a over (a, c) now
    comes over (a, b).  The bound does not fall: the joined table is the least of the three parts that it replaces.
(2) classes that fell together share their values; edges that fell together add up, edges inside a class are gone.
(3) a row keeps its price; the price of a row that is gone goes to the nearest that is left, because a row mostly goes
    where another implies it: usage_t - slack_t <= usage_r - slack_r for every selection bounds no worse on r.
Any start is valid: this one saves the ascent that was already made.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from solver.arrays import Array, Ints
from solver.selection.kernel import INTS, NOTHING, REALS, kernel
from solver.selection.messages import message_start
from solver.selection.reduced import GRAPH, Graph, Reduced


@kernel(NOTHING(GRAPH, INTS, REALS, GRAPH, INTS, REALS, INTS, INTS, INTS))
def add_messages(
    above: Graph,
    above_start: Ints,
    above_messages: Array,
    graph: Graph,
    start: Ints,
    messages: Array,
    new_class: Ints,
    option_first: Ints,
    option_of: Ints,
) -> None:
    """Add the messages of all edges above to those of the edges that they became."""
    for e in range(above.edge_a.size):
        a, b = above.edge_a[e], above.edge_b[e]
        new_a, new_b = new_class[a], new_class[b]
        if new_a < 0 or new_b < 0 or new_a == new_b:
            continue
        for p in range(graph.adj_start[new_a], graph.adj_start[new_a + 1]):
            if graph.adj_node[p] != new_b:
                continue
            f = graph.adj_edge[p]
            to_a, to_b = start[2 * f + 1], start[2 * f]
            if graph.edge_a[f] != new_a:
                to_a, to_b = to_b, to_a
            for v in range(graph.sizes[new_b]):
                messages[to_b + v] += above_messages[above_start[2 * e] + option_of[option_first[b] + v]]
            for v in range(graph.sizes[new_a]):
                messages[to_a + v] += above_messages[above_start[2 * e + 1] + option_of[option_first[a] + v]]


def carried_messages(above: Reduced, messages: Array, reduced: Reduced) -> Array:
    """The messages of ``above`` in the layout of ``reduced``, which was made from it in any number of steps."""
    if reduced is above:
        return messages.copy()
    if reduced.above is None:
        raise ValueError("no step leads from the one problem to the other")
    parent = reduced.above
    given = carried_messages(above, messages, parent)
    graph, places = parent.graph, message_start(parent.graph)
    if reduced.eliminations:
        graph, given = _joined(parent, given, reduced)
        places = message_start(graph)
    start = message_start(reduced.graph)
    carried = np.zeros(int(start[-1]))
    maps = (reduced.node_class, reduced.option_first, reduced.option_of)
    add_messages(graph, places, given, reduced.graph, start, carried, *maps)
    return carried


def _joined(parent: Reduced, messages: Array, reduced: Reduced) -> tuple[Graph, Array]:
    """The edges after the eliminations of a step, and what comes over each to its ends."""
    graph = parent.graph
    parts = [messages[first:last] for first, last in pairwise(message_start(graph).tolist())]
    ends = list(zip(graph.edge_a.tolist(), graph.edge_b.tolist(), strict=True))
    incoming: dict[tuple[int, int], Array] = {}  # (to, from)
    for e, (a, b) in enumerate(ends):
        incoming[b, a], incoming[a, b] = parts[2 * e], parts[2 * e + 1]
    for step in reduced.eliminations:
        c = step.eliminated
        left = {end: incoming.pop((end, c)) for end in step.neighbours}
        for end in step.neighbours:
            del incoming[c, end]
        if len(step.neighbours) == 2:
            for end, other in (step.neighbours, step.neighbours[::-1]):
                known = incoming.get((end, other))
                incoming[end, other] = left[end] if known is None else known + left[end]
    pairs = sorted(pair for pair in incoming if pair[0] < pair[1])
    edge_a, edge_b = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    layout = [incoming[pair] for a, b in pairs for pair in ((b, a), (a, b))]
    return graph._replace(edge_a=edge_a, edge_b=edge_b), np.concatenate([np.zeros(0), *layout])


def carried_prices(above: Reduced, price: Array, reduced: Reduced) -> Array:
    """real[R]: the prices of ``above`` on the rows of ``reduced``."""
    carried = np.zeros(reduced.num_rows)
    if reduced.num_rows:
        after = np.minimum(np.searchsorted(reduced.row_begin, above.row_begin), reduced.num_rows - 1)
        before = np.maximum(after - 1, 0)
        nearer = above.row_begin - reduced.row_begin[before] < reduced.row_begin[after] - above.row_begin
        np.add.at(carried, np.where(nearer, before, after), price)
    return carried
