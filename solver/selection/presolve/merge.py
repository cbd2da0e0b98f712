"""The problem made smaller by what is forbidden: the passes of ``classes`` until nothing changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Ints
from solver.selection.presolve.classes import (
    KEPT,
    NEVER,
    Classes,
    add_diagonals,
    add_tables,
    adjacency,
    fold,
    offsets,
    renumber_values,
    root_of,
    unite,
)
from solver.selection.presolve.narrowing import narrow
from solver.selection.problem import FORBIDDEN, InvalidSelection, SelectionProblem

LARGEST_SUM = 2.0**59


class Contradiction(Exception):
    """No permitted selection exists: the options of these nodes exclude each other."""

    def __init__(self, nodes: tuple[int, ...]) -> None:
        super().__init__(f"nodes {nodes} exclude each other")
        self.nodes = nodes


@dataclass(frozen=True)
class PassResult:
    """Classes after one pass, and whether another pass may find more."""

    classes: Classes
    changed: bool


def merged_classes(problem: SelectionProblem) -> Classes:
    """Classes of nodes that move together.  Raises Contradiction where nothing is permitted."""
    _refuse_large_sums(problem)
    classes = Classes(
        sizes=problem.option_counts,
        unary=problem.node_costs.copy(),
        edge_a=np.ascontiguousarray(problem.edge_nodes[:, 0]),
        edge_b=np.ascontiguousarray(problem.edge_nodes[:, 1]),
        table=problem.edge_costs,
        option_counts=problem.option_counts,
        node_class=np.arange(problem.num_nodes, dtype=np.int64),
        node_value=_ramp(problem.option_counts),
    )
    return shrink_classes(one_pass(classes, FORBIDDEN).classes)


def shrink_classes(classes: Classes) -> Classes:
    """Passes until nothing changes."""
    result = one_pass(classes, NEVER)
    while result.changed:
        result = one_pass(result.classes, NEVER)
    return result.classes


def one_pass(classes: Classes, never: int) -> PassResult:
    """Narrow, fold, unite and renumber once."""
    start, edge_start = classes.start, classes.edge_start
    alive = classes.unary < never
    _narrow(classes, start, edge_start, alive, never)
    unary = np.where(alive, classes.unary, NEVER)
    kinds = np.zeros(classes.edge_a.size, np.int64)
    partners = np.zeros(classes.table.size, np.int64)
    ends = (classes.edge_a, classes.edge_b)
    fold(start, *ends, edge_start, classes.table, never, alive, unary, kinds, partners)
    parent = np.arange(classes.sizes.size, dtype=np.int64)
    up = np.where(alive, _ramp(classes.sizes), -1)
    contradicted = np.zeros(alive.size, np.bool_)
    unite(start, *ends, edge_start, kinds, partners, alive, parent, up, contradicted)
    roots = np.array([root_of(c, start, parent, up) for c in range(parent.size)], np.int64)
    changed = bool((kinds != KEPT).any() or not alive.all() or contradicted.any())
    if not changed and never == NEVER and not _parallel(classes):
        return PassResult(classes, changed=False)
    unary[contradicted] = NEVER
    return PassResult(_renumber(classes, never, unary, alive, kinds, roots, up), changed=True)


def _narrow(classes: Classes, start: Ints, edge_start: Ints, alive: NDArray[np.bool_], never: int) -> None:
    if classes.sizes.size and not np.logical_or.reduceat(alive, start[:-1]).all():
        empty = int(np.flatnonzero(~np.logical_or.reduceat(alive, start[:-1]))[0])
        raise Contradiction(_members(classes, [empty]))
    if classes.edge_a.size == 0:
        return
    adj_start, _, adj_edge = adjacency(classes.sizes.size, classes.edge_a, classes.edge_b)
    ends = (classes.edge_a, classes.edge_b)
    edge = narrow(start, *ends, edge_start, adj_start, adj_edge, classes.table, never, alive)
    if edge >= 0:
        raise Contradiction(_members(classes, [int(classes.edge_a[edge]), int(classes.edge_b[edge])]))


def _members(classes: Classes, which: list[int]) -> tuple[int, ...]:
    """One node of each of these classes, for messages."""
    return tuple(int(np.flatnonzero(classes.node_class == c)[0]) for c in which)


def _parallel(classes: Classes) -> bool:
    low = np.minimum(classes.edge_a, classes.edge_b)
    keys = low * classes.sizes.size + np.maximum(classes.edge_a, classes.edge_b)
    return bool(np.unique(keys).size < keys.size)


def _renumber(
    classes: Classes,
    never: int,
    unary: Ints,
    alive: NDArray[np.bool_],
    kinds: Ints,
    roots: Ints,
    up: Ints,
) -> Classes:
    """The tables over the joined classes and the live values."""
    start, edge_start = classes.start, classes.edge_start
    kept_roots = np.unique(roots)
    position = np.zeros(roots.size, np.int64)
    position[kept_roots] = np.arange(kept_roots.size)
    new_class = position[roots]
    rank = np.cumsum(alive) - 1
    live_before = np.concatenate([[0], np.cumsum(alive)])[start[:-1]]
    value_in_class = np.where(alive, rank - np.repeat(live_before, classes.sizes), -1)
    root_option = np.repeat(start[roots], classes.sizes) + np.maximum(up, 0)
    new_value = np.where(alive, value_in_class[root_option], -1)
    sizes = np.add.reduceat(alive, start[:-1], dtype=np.int64)[kept_roots] if roots.size else classes.sizes
    new_unary = np.zeros(int(sizes.sum()), np.int64)
    renumber_values(start, unary, alive, new_class, new_value, offsets(sizes), new_unary)
    live = kinds == KEPT
    inside = live & (new_class[classes.edge_a] == new_class[classes.edge_b])
    if inside.any():
        chosen = np.flatnonzero(inside)
        ends = np.stack([classes.edge_a[chosen], classes.edge_b[chosen]], axis=1).ravel()
        target = offsets(sizes)[new_class[classes.edge_a[chosen]]]
        add_diagonals(start, ends, edge_start[chosen], classes.table, never, new_value, target, new_unary)
    edge_a, edge_b, table = _join_edges(classes, never, live & ~inside, new_class, new_value, sizes)
    mapped = np.concatenate([new_value, [-1]])
    option_class = np.repeat(classes.node_class, classes.option_counts)
    old = np.where(classes.node_value >= 0, start[option_class] + classes.node_value, mapped.size - 1)
    return Classes(
        sizes, new_unary, edge_a, edge_b, table, classes.option_counts, new_class[classes.node_class], mapped[old]
    )


def _join_edges(
    classes: Classes,
    never: int,
    chosen: NDArray[np.bool_],
    new_class: Ints,
    new_value: Ints,
    sizes: Ints,
) -> tuple[Ints, Ints, Ints]:
    """Ends and tables of the chosen edges between the new classes, parallel ones added up."""
    ends = np.stack([new_class[classes.edge_a], new_class[classes.edge_b]])
    keys = ends.min(axis=0) * sizes.size + ends.max(axis=0)
    distinct, group = np.unique(keys[chosen], return_inverse=True)
    edge_a, edge_b = np.divmod(distinct, max(sizes.size, 1))
    edge_start = offsets(sizes[edge_a] * sizes[edge_b])
    table = np.zeros(int(edge_start[-1]), np.int64)
    base = np.full((classes.edge_a.size, 2), -1, np.int64)
    base[chosen, 0] = edge_start[:-1][group]
    base[chosen, 1] = sizes[edge_b][group]
    ends_before = (classes.edge_a, classes.edge_b)
    add_tables(
        classes.start,
        *ends_before,
        classes.edge_start,
        classes.table,
        new_class,
        never,
        new_value,
        base.ravel(),
        table,
    )
    return edge_a, edge_b, table


def _refuse_large_sums(problem: SelectionProblem) -> None:
    """Sums of permitted costs must be exact in 64 bits, with room for the sums of sums that are taken here."""
    total = 0.0
    for costs, start in ((problem.node_costs, problem.option_start), (problem.edge_costs, problem.edge_start)):
        if costs.size:
            size = np.where(costs < FORBIDDEN, np.abs(costs.astype(np.float64)), 0.0)
            total += float(np.maximum.reduceat(size, start[:-1]).sum())
    if total > LARGEST_SUM:
        raise InvalidSelection(
            f"the largest permitted costs of all nodes and edges add up to {total:.3g}, which exceeds 2**59: exact "
            "sums do not fit in 64 bits; divide all costs by a common factor"
        )


def _ramp(counts: Ints) -> Ints:
    """0 .. counts[0] - 1, 0 .. counts[1] - 1, .."""
    total = int(counts.sum())
    return np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
