"""Values that are never needed: those that another value of the class beats whatever the others do.

Value j dominates value k of class c where, over the living values m of each neighbour,

    unary[j] - unary[k] + sum over edges of max_m (table[j, m] - table[k, m])  <=  0,   pairs forbidden to k left out,
    usage_s(j) <= usage_s(k)  for every segment s of c.

Removing k keeps an optimum: exchange k for j in any selection, and it costs no more and uses no more.  Values are
removed one at a time, each against values that still live, so equal values do not remove each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Ints
from solver.selection.kernel import FLAG, FLAGS, INT, INTS, kernel
from solver.selection.presolve.classes import NEVER
from solver.selection.reduced import GRAPH, MEMORY, Graph, Memory


@kernel(FLAG(MEMORY, INT, INT, INT))
def uses_no_more(memory: Memory, c: int, j: int, k: int) -> bool:
    """Whether value j of c uses at most what k uses, segment by segment."""
    for s in range(memory.class_seg[c], memory.class_seg[c + 1]):
        if memory.seg_usage[memory.seg_start[s] + j] > memory.seg_usage[memory.seg_start[s] + k]:
            return False
    return True


@kernel(INT(GRAPH, INTS, FLAGS, INT, INT, INT, INT, INT))
def largest_rise(graph: Graph, table: Ints, alive: NDArray[np.bool_], c: int, p: int, j: int, k: int, only: int) -> int:
    """Max over m of table[j, m] - table[k, m] on the edge at place p; ``only`` >= 0 looks at that m alone."""
    e, other = graph.adj_edge[p], graph.adj_node[p]
    is_a = graph.edge_a[e] == c
    step = 1 if is_a else graph.sizes[c]
    first_j = graph.edge_start[e] + (j * graph.sizes[other] if is_a else j)
    first_k = graph.edge_start[e] + (k * graph.sizes[other] if is_a else k)
    rise = np.int64(-NEVER)
    low, high = (only, only + 1) if only >= 0 else (0, graph.sizes[other])
    for m in range(low, high):
        if alive[graph.start[other] + m] and table[first_k + m * step] < NEVER:
            if table[first_j + m * step] >= NEVER:
                return NEVER
            rise = max(rise, table[first_j + m * step] - table[first_k + m * step])
    return rise  # type: ignore[return-value]


@kernel(INT(GRAPH, MEMORY, INTS, INTS, FLAGS, INTS, INT, INT, INT))
def drop_dominated(
    graph: Graph,
    memory: Memory,
    unary: Ints,
    table: Ints,
    alive: NDArray[np.bool_],
    witness: Ints,
    first_class: int,
    last_class: int,
    largest_work: int,
) -> int:
    """Clear ``alive`` of dominated values of classes first_class until before last_class; the table entries looked at.

    ``witness[c]``: a living value to refute quickly with.
    """
    work = 0
    for c in range(first_class, last_class):
        first, size = graph.start[c], graph.sizes[c]
        degree = graph.adj_start[c + 1] - graph.adj_start[c]
        for k in range(size):
            if not alive[first + k]:
                continue
            for j in range(size):
                if j == k or not alive[first + j] or not uses_no_more(memory, c, j, k):
                    continue
                work += 1 + degree
                total = unary[first + j] - unary[first + k]
                for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
                    rise = largest_rise(graph, table, alive, c, p, j, k, witness[graph.adj_node[p]])
                    if rise >= NEVER or rise <= -NEVER:
                        total = rise  # refuted, or this witness says nothing
                        break
                    total += rise
                if total > 0:
                    continue
                total = unary[first + j] - unary[first + k]
                for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
                    work += graph.sizes[graph.adj_node[p]]
                    rise = largest_rise(graph, table, alive, c, p, j, k, -1)
                    if rise >= NEVER:
                        total = NEVER
                        break
                    total = max(total + rise, -NEVER)
                if total <= 0:
                    alive[first + k] = False
                    break
            if work > largest_work:
                return work
    return work


@kernel(INT(GRAPH, MEMORY, FLAGS, INT))
def drop_overflowing(graph: Graph, memory: Memory, alive: NDArray[np.bool_], largest_work: int) -> int:
    """Clear ``alive`` of values that overflow a row even when all other classes use their least there."""
    removed, work = 0, 0
    now = np.zeros(memory.slack.size + 1, np.int64)
    for c in range(graph.sizes.size):
        low, high = memory.slack.size, 0
        for s in range(memory.class_seg[c], memory.class_seg[c + 1]):
            low, high = min(low, memory.seg_lo[s]), max(high, memory.seg_hi[s])
        work += (high - low + 1) * graph.sizes[c]
        if high <= low or work > largest_work:
            continue
        for v in range(graph.sizes[c]):
            if not alive[graph.start[c] + v]:
                continue
            for s in range(memory.class_seg[c], memory.class_seg[c + 1]):
                now[memory.seg_lo[s]] += memory.seg_usage[memory.seg_start[s] + v]
                now[memory.seg_hi[s]] -= memory.seg_usage[memory.seg_start[s] + v]
            total, fitting = np.int64(0), True
            for r in range(low, high):
                total += now[r]
                now[r] = 0
                if total > memory.slack[r]:
                    fitting = False
            now[high] = 0
            if not fitting:
                alive[graph.start[c] + v] = False
                removed += 1
    return removed
