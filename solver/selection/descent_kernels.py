"""Better selections nearby: exact moves over random trees of classes, within the memory of every row.

Move      grow a random tree: each new class touches exactly one class of the tree; all other classes stay.  Minimise
          a guiding cost over the whole tree by dynamic programming from the leaves (``best_tree``).
Accept    where every row still fits and the accepting cost does not rise.  Guiding and accepting costs are the true
          costs or the costs with priced memory: a priced acceptance gives memory back, so that a later move can
          spend it elsewhere.
"""

from __future__ import annotations

import numpy as np

from solver.arrays import Array, Ints
from solver.selection.kernel import INT, INTS, NOTHING, REAL, REALS, kernel
from solver.selection.prices import COSTS, Costs
from solver.selection.reduced import GRAPH, MEMORY, Graph, Memory

LARGEST = 1e300


@kernel(INT(INTS, INT))
def draw(state: Ints, count: int) -> int:
    """A number in 0 .. count - 1; advances the generator (xorshift on 63 bits)."""
    word = state[0]
    word ^= (word << 13) & 0x7FFFFFFFFFFFFFFF
    word ^= word >> 7
    word ^= (word << 17) & 0x7FFFFFFFFFFFFFFF
    state[0] = word
    return int((word >> 11) % count)


@kernel(INT(GRAPH, INT, INT, INTS, INTS, INTS, INTS, INTS))
def grow_tree(
    graph: Graph,
    root: int,
    limit: int,
    state: Ints,
    position: Ints,
    member: Ints,
    parent: Ints,
    link: Ints,
) -> int:
    """Fill ``member``, ``parent`` (a position) and ``link`` (an edge); ``position[c]`` is set for members, else -1."""
    room = 16 * limit + 64
    front = np.empty((room, 3), np.int64)
    waiting, count = 0, 1
    member[0], parent[0], link[0], position[root] = root, -1, -1, 0
    newest = root
    while True:
        for p in range(graph.adj_start[newest], graph.adj_start[newest + 1]):
            if position[graph.adj_node[p]] < 0 and waiting < room:
                front[waiting, 0], front[waiting, 1], front[waiting, 2] = (
                    graph.adj_node[p],
                    position[newest],
                    graph.adj_edge[p],
                )
                waiting += 1
        newest = -1
        while waiting > 0 and newest < 0 and count < limit:
            z = draw(state, waiting)
            c, above, e = front[z, 0], front[z, 1], front[z, 2]
            waiting -= 1
            front[z, 0], front[z, 1], front[z, 2] = front[waiting, 0], front[waiting, 1], front[waiting, 2]
            if position[c] >= 0:
                continue
            touching = 0
            for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
                if position[graph.adj_node[p]] >= 0:
                    touching += 1
                    if touching > 1:
                        break
            if touching == 1:
                member[count], parent[count], link[count], position[c] = c, above, e, count
                count += 1
                newest = c
        if newest < 0:
            return count


@kernel(NOTHING(GRAPH, REALS, REALS, INT, INTS, INTS, INTS, INTS, INTS))
def best_tree(
    graph: Graph,
    guide: Array,
    table: Array,
    count: int,
    position: Ints,
    member: Ints,
    parent: Ints,
    link: Ints,
    values: Ints,
) -> None:
    """Give the members of a tree their cheapest values together, all other values fixed."""
    height_start, back_start = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    for q in range(count):
        height_start[q + 1] = height_start[q] + graph.sizes[member[q]]
        back_start[q + 1] = back_start[q] + (graph.sizes[member[parent[q]]] if q > 0 else 0)
    heights, back = np.empty(height_start[count]), np.empty(back_start[count], np.int64)
    for q in range(count):
        c, size = member[q], graph.sizes[member[q]]
        height = heights[height_start[q] : height_start[q] + size]
        for k in range(size):
            height[k] = guide[graph.start[c] + k]
        for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
            other, e = graph.adj_node[p], graph.adj_edge[p]
            if position[other] >= 0:
                continue
            if graph.edge_a[e] == c:
                first, stride = graph.edge_start[e] + values[other], graph.sizes[other]
                for k in range(size):
                    height[k] += table[first + k * stride]
            else:
                first = graph.edge_start[e] + values[other] * size
                for k in range(size):
                    height[k] += table[first + k]
    for q in range(count - 1, 0, -1):
        c, e = member[q], link[q]
        size, above = graph.sizes[c], graph.sizes[member[parent[q]]]
        height = heights[height_start[q] : height_start[q] + size]
        for m in range(above):
            best, choice = LARGEST, 0
            if graph.edge_a[e] == c:
                first = graph.edge_start[e] + m
                for k in range(size):
                    cost = height[k] + table[first + k * above]
                    if cost < best:
                        best, choice = cost, k
            else:
                first = graph.edge_start[e] + m * size
                for k in range(size):
                    cost = height[k] + table[first + k]
                    if cost < best:
                        best, choice = cost, k
            heights[height_start[parent[q]] + m] += best
            back[back_start[q] + m] = choice
    best_root = 0
    for k in range(1, graph.sizes[member[0]]):
        if heights[k] < heights[best_root]:
            best_root = k
    values[member[0]] = best_root
    for q in range(1, count):
        values[member[q]] = back[back_start[q] + values[member[parent[q]]]]


@kernel(REAL(GRAPH, REALS, REALS, INT, INTS, INTS, INTS))
def change_in_cost(graph: Graph, unary: Array, table: Array, count: int, member: Ints, old: Ints, new: Ints) -> float:
    """Cost of ``new`` less that of ``old``, which differ in members only."""
    change = 0.0
    for q in range(count):
        c = member[q]
        if new[c] == old[c]:
            continue
        change += unary[graph.start[c] + new[c]] - unary[graph.start[c] + old[c]]
        for p in range(graph.adj_start[c], graph.adj_start[c + 1]):
            other, e = graph.adj_node[p], graph.adj_edge[p]
            if new[other] != old[other] and other < c:
                continue  # counted from the other end
            first = graph.edge_start[e]
            if graph.edge_a[e] == c:
                stride = graph.sizes[other]
                change += table[first + new[c] * stride + new[other]] - table[first + old[c] * stride + old[other]]
            else:
                stride = graph.sizes[c]
                change += table[first + new[other] * stride + new[c]] - table[first + old[other] * stride + old[c]]
    return change


@kernel(INT(MEMORY, INT, INTS, INTS, INTS, INTS, INTS))
def apply_usage(memory: Memory, count: int, member: Ints, old: Ints, new: Ints, usage: Ints, delta: Ints) -> int:
    """Move ``usage`` from ``old`` to ``new`` and return 1 if every row still fits, else leave it and return 0.

    A row that was already overfull must not get fuller.
    """
    low, high = usage.size, 0
    for q in range(count):
        c = member[q]
        if new[c] == old[c]:
            continue
        for s in range(memory.class_seg[c], memory.class_seg[c + 1]):
            more = memory.seg_usage[memory.seg_start[s] + new[c]] - memory.seg_usage[memory.seg_start[s] + old[c]]
            if more != 0:
                delta[memory.seg_lo[s]] += more
                delta[memory.seg_hi[s]] -= more
                low, high = min(low, memory.seg_lo[s]), max(high, memory.seg_hi[s])
    running, fitting = np.int64(0), 1
    for r in range(low, high):
        running += delta[r]
        if running > 0 and usage[r] + running > memory.slack[r]:
            fitting = 0
            break
    running = np.int64(0)
    for r in range(low, high):
        running += delta[r]
        delta[r] = 0
        if fitting == 1:
            usage[r] += running
    if high >= low:
        delta[high] = 0
    return fitting


@kernel(REAL(GRAPH, MEMORY, COSTS, REALS, REALS, INTS, INTS, INTS, INTS, INT))
def descend(
    graph: Graph,
    memory: Memory,
    costs: Costs,
    guide: Array,
    accept: Array,
    tree_sizes: Ints,
    values: Ints,
    usage: Ints,
    state: Ints,
    moves: int,
) -> float:
    """Try moves, guided in turn by ``guide`` and ``accept``, accepted by ``accept``; the change of the true cost."""
    num, largest = graph.sizes.size, tree_sizes[0]
    for choice in range(1, tree_sizes.size):
        largest = max(largest, tree_sizes[choice])
    position = np.full(num, -1, np.int64)
    member, parent, link = np.empty(largest, np.int64), np.empty(largest, np.int64), np.empty(largest, np.int64)
    delta = np.zeros(usage.size + 1, np.int64)
    trial = values.copy()
    total = 0.0
    for _ in range(moves):
        root = draw(state, num)
        limit = tree_sizes[draw(state, tree_sizes.size)]
        count = grow_tree(graph, root, limit, state, position, member, parent, link)
        chosen = guide if draw(state, 2) == 0 else accept
        best_tree(graph, chosen, costs.table, count, position, member, parent, link, trial)
        taken = False
        changed = 0
        for q in range(count):
            position[member[q]] = -1
            if trial[member[q]] != values[member[q]]:
                changed += 1
        if changed > 0:
            worth = change_in_cost(graph, accept, costs.table, count, member, values, trial)
            if worth <= 0.0 and apply_usage(memory, count, member, values, trial, usage, delta) == 1:
                total += change_in_cost(graph, costs.unary, costs.table, count, member, values, trial)
                taken = True
        for q in range(count):
            if taken:
                values[member[q]] = trial[member[q]]
            else:
                trial[member[q]] = values[member[q]]
    return total
