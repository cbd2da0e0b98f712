"""Values without a permitted partner: arc consistency over the pair tables, until nothing changes.

``revise`` clears the values of one edge's two ends that find no permitted partner at the other end; an end that lost
values puts its other edges back into the queue.  Edges that forbid nothing are never looked at again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Ints
from solver.selection.kernel import FLAG, FLAGS, INT, INTS, kernel

LOST_A, LOST_B, EMPTY = 1, 2, 4


@kernel(FLAG(INTS, INT, INT, INT))
def forbids(table: Ints, first: int, last: int, never: int) -> bool:
    """Whether any entry between first and last is forbidden."""
    for cell in range(first, last):  # noqa: SIM110  # compiled: no generators
        if table[cell] >= never:
            return True
    return False


@kernel(INT(INTS, INT, INT, INT, INT, INT, INT, FLAGS, FLAGS))
def revise(
    table: Ints,
    cells: int,
    first_a: int,
    size_a: int,
    first_b: int,
    size_b: int,
    never: int,
    alive: NDArray[np.bool_],
    supported: NDArray[np.bool_],
) -> int:
    """Clear what has no partner on one edge; the sum of LOST_A, LOST_B, EMPTY that happened."""
    supported[:size_b] = False
    left_a, left_b, result = False, False, 0
    for k in range(size_a):
        if not alive[first_a + k]:
            continue
        found = False
        for m in range(size_b):
            if alive[first_b + m] and table[cells + k * size_b + m] < never:
                found = True
                supported[m] = True
        if found:
            left_a = True
        else:
            alive[first_a + k] = False
            result |= LOST_A
    for m in range(size_b):
        if supported[m]:
            left_b = True
        elif alive[first_b + m]:
            alive[first_b + m] = False
            result |= LOST_B
    return result if left_a and left_b else result | EMPTY


@kernel(INT(INTS, INTS, INTS, INTS, INTS, INTS, INTS, INT, FLAGS))
def narrow(
    start: Ints,
    edge_a: Ints,
    edge_b: Ints,
    edge_start: Ints,
    adj_start: Ints,
    adj_edge: Ints,
    table: Ints,
    never: int,
    alive: NDArray[np.bool_],
) -> int:
    """Clear ``alive`` where a value has no permitted partner; -1, or the edge whose class lost its last value."""
    num_edges, largest = edge_a.size, np.int64(1)
    for c in range(start.size - 1):
        largest = max(largest, start[c + 1] - start[c])
    waiting, matters = np.zeros(num_edges, np.bool_), np.zeros(num_edges, np.bool_)
    queue, supported = np.zeros(num_edges, np.int64), np.zeros(largest, np.bool_)
    head, count = 0, 0
    for e in range(num_edges):
        if forbids(table, edge_start[e], edge_start[e + 1], never):
            waiting[e], matters[e] = True, True
            queue[count] = e
            count += 1
    while count > 0:
        e = queue[head]
        head = (head + 1) % num_edges
        count -= 1
        waiting[e] = False
        a, b = edge_a[e], edge_b[e]
        size_a, size_b = start[a + 1] - start[a], start[b + 1] - start[b]
        outcome = revise(table, edge_start[e], start[a], size_a, start[b], size_b, never, alive, supported)
        if outcome & EMPTY:
            return int(e)
        for side in range(2):
            if not outcome & (LOST_A if side == 0 else LOST_B):
                continue
            c = a if side == 0 else b
            for p in range(adj_start[c], adj_start[c + 1]):
                f = adj_edge[p]
                if f != e and matters[f] and not waiting[f]:
                    waiting[f] = True
                    queue[(head + count) % num_edges] = f
                    count += 1
    return -1
