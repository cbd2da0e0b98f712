"""Elimination of classes without memory and with at most two neighbours.

Class c with neighbours a and b becomes the pair table  new[k, m] = min over v of  unary[v] + table_a[k, v] +
table_b[m, v]  between them (a unary of a where b is missing).  Optima and costs stay; the way back is the minimiser.
A step is taken only where the tables do not grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from solver.arrays import Ints
from solver.selection.kernel import INT, INTS, NOTHING, kernel
from solver.selection.presolve.classes import NEVER, Classes, offsets
from solver.selection.reduced import Elimination, Reduced

LARGEST_STEP = 20_000_000
"""Sums in one step; larger ones cost more than they save."""


@kernel(NOTHING(INTS, INTS, INTS, INT, INT, INT, INTS, INTS))
def join(
    unary: Ints,
    table_a: Ints,
    table_b: Ints,
    size_a: int,
    size_b: int,
    size: int,
    joined: Ints,
    best: Ints,
) -> None:
    """new[k, m] and its minimiser from row-major tables size_a x size and size_b x size, both over c's values."""
    for k in range(size_a):
        for m in range(size_b):
            lowest, chosen = np.int64(NEVER), 0
            for v in range(size):
                first, second = table_a[k * size + v], table_b[m * size + v]
                if first < NEVER and second < NEVER:
                    cost = unary[v] + first + second
                    if cost < lowest:
                        lowest, chosen = cost, v
            joined[k * size_b + m] = lowest
            best[k * size_b + m] = chosen


@dataclass
class Tables:
    """The graph while it changes: one table a pair, rows by the lower class."""

    sizes: Ints
    unary: list[Ints]
    tables: dict[tuple[int, int], Ints]
    neighbours: list[set[int]]
    steps: list[Elimination] = field(default_factory=list)

    def rows_of(self, row: int, column: int) -> Ints:
        """The table between two classes, flat, with ``row``'s values as rows."""
        if row < column:
            return self.tables[row, column]
        turned = self.tables[column, row].reshape(self.sizes[column], self.sizes[row]).T
        return np.ascontiguousarray(turned).ravel()

    def eliminate(self, c: int) -> bool:
        """Take class c out if its step is small enough."""
        ends = sorted(self.neighbours[c])
        size = int(self.sizes[c])
        if len(ends) == 2 and not self._pays(ends[0], ends[1], size):
            return False
        if not ends:
            chosen = int(np.argmin(self.unary[c]))
            self.steps.append(Elimination(c, (), np.array(chosen)))
            self.unary[c] = self.unary[c][chosen : chosen + 1].copy()
            return True
        shape = tuple(int(self.sizes[end]) for end in ends)
        second = self.rows_of(ends[1], c) if len(ends) == 2 else np.zeros(size, np.int64)
        columns = shape[1] if len(ends) == 2 else 1
        joined, best = np.zeros(shape[0] * columns, np.int64), np.zeros(shape[0] * columns, np.int64)
        join(self.unary[c], self.rows_of(ends[0], c), second, shape[0], columns, size, joined, best)
        self.steps.append(Elimination(c, tuple(ends), best.reshape(shape)))
        for end in ends:
            self.neighbours[end].discard(c)
            del self.tables[min(end, c), max(end, c)]
        if len(ends) == 1:
            self.unary[ends[0]] = add(self.unary[ends[0]], joined)
        else:
            pair = (ends[0], ends[1])
            self.tables[pair] = add(self.tables[pair], joined) if pair in self.tables else joined
            self.neighbours[ends[0]].add(ends[1])
            self.neighbours[ends[1]].add(ends[0])
        self.neighbours[c] = set()
        self.unary[c] = np.zeros(1, np.int64)
        return True

    def _pays(self, a: int, b: int, size: int) -> bool:
        size_a, size_b = int(self.sizes[a]), int(self.sizes[b])
        grows = size_a * size_b > size * (size_a + size_b) and (a, b) not in self.tables
        return not grows and size_a * size_b * size <= LARGEST_STEP


def add(first: Ints, second: Ints) -> Ints:
    """Sums that stay NEVER where either is."""
    return np.where((first >= NEVER) | (second >= NEVER), NEVER, first + second)


def eliminate_small_degrees(reduced: Reduced) -> tuple[Classes, tuple[Elimination, ...]]:
    """The classes of ``reduced`` without those that were taken out (left with one value each), and the steps."""
    graph = reduced.graph
    free_of_memory = np.diff(reduced.memory.class_seg) == 0
    state = Tables(graph.sizes, np.split(reduced.unary, graph.start[1:-1]), {}, [])
    state.neighbours = [
        set(graph.adj_node[graph.adj_start[c] : graph.adj_start[c + 1]].tolist()) for c in range(graph.sizes.size)
    ]
    for e, pair in enumerate(zip(graph.edge_a.tolist(), graph.edge_b.tolist(), strict=True)):
        state.tables[pair] = reduced.table[graph.edge_start[e] : graph.edge_start[e + 1]]
    waiting = [c for c in range(graph.sizes.size) if free_of_memory[c] and len(state.neighbours[c]) <= 2]
    gone: set[int] = set()
    while waiting:
        c = waiting.pop()
        around = state.neighbours[c]
        if c in gone or len(around) > 2 or not state.eliminate(c):
            continue
        gone.add(c)
        waiting += [other for other in around if free_of_memory[other] and len(state.neighbours[other]) <= 2]
    return _as_classes(state, gone), tuple(state.steps)


def _as_classes(state: Tables, gone: set[int]) -> Classes:
    """Tables as classes over themselves: those that are gone keep one value, which stands for all of theirs."""
    counts = state.sizes
    sizes = counts.copy()
    sizes[list(gone)] = 1
    value = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(offsets(counts)[:-1], counts)
    value[np.repeat(sizes < counts, counts)] = -1
    value[offsets(counts)[:-1]] = 0
    pairs = np.array(sorted(state.tables), np.int64).reshape(-1, 2)
    tables = [state.tables[int(a), int(b)] for a, b in pairs]
    return Classes(
        sizes=sizes,
        unary=np.concatenate([np.zeros(0, np.int64), *state.unary]),
        edge_a=np.ascontiguousarray(pairs[:, 0]),
        edge_b=np.ascontiguousarray(pairs[:, 1]),
        table=np.concatenate([np.zeros(0, np.int64), *tables]),
        option_counts=counts,
        node_class=np.arange(counts.size, dtype=np.int64),
        node_value=value,
    )
