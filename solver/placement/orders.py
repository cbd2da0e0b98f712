"""Orders of positions: those made without a search, exchanges of leaves in them, and positions for counts."""

from __future__ import annotations

import numpy as np

from solver.arrays import Ints
from solver.placement.problem import PlacementProblem, cost_s, flat

STARTS = 3
EXCHANGES = 700
"""Exchanges of two leaves that are tried from each of the best orders made without a search."""


def in_order(problem: PlacementProblem, positions: Ints, leaves: Ints) -> Ints:
    """Leaves filled one after the other with positions in an order: leaf of each position."""
    slots = np.repeat(leaves, problem.free[leaves])[: problem.num_positions]
    found = np.empty(problem.num_positions, dtype=np.int64)
    found[positions] = slots
    return found


def packed_orders(problem: PlacementProblem) -> list[tuple[Ints, Ints]]:
    """Positions and leaves in orders that need no search; the first is everything as it is listed.

    Groups of each family side by side, filling leaves as listed and with the fullest first.
    """
    everyone = np.arange(problem.num_positions, dtype=np.int64)
    orders, shapes = [everyone], set[tuple[int, int]]()
    for family in problem.families:
        if family.groups.shape in shapes:
            continue
        shapes.add((family.groups.shape[0], family.groups.shape[1]))
        number = np.full(problem.num_positions, len(family.groups), dtype=np.int64)
        number[family.groups] = np.arange(len(family.groups))[:, None]
        orders.append(np.argsort(number, kind="stable"))
    listed = np.arange(len(problem.free), dtype=np.int64)
    return [(order, leaves) for leaves in (listed, _near_each_other(problem)) for order in orders]


def _near_each_other(problem: PlacementProblem) -> Ints:
    """Leaves by the free nodes under their switch of each tier from above, most first."""
    keys = [-problem.free]
    for tier in problem.tiers[1:]:
        below = np.bincount(tier.switch_of_leaf, weights=problem.free, minlength=len(tier.capacity))
        keys += [tier.switch_of_leaf, -below[tier.switch_of_leaf].astype(np.int64)]
    return np.lexsort(keys).astype(np.int64)


def exchanged_leaves(problem: PlacementProblem, seed: int) -> tuple[Ints, float]:
    """The best of ``packed_orders``, and of the orders that exchanging two leaves of the best of them gives."""
    draw, quick = np.random.default_rng(seed), flat(problem)
    packed = packed_orders(problem)
    starts = sorted((cost_s(quick, in_order(problem, *each)), at) for at, each in enumerate(packed))
    best, best_s = in_order(problem, *packed[starts[0][1]]), starts[0][0]
    used = np.flatnonzero(problem.free)
    for start_s, at in starts[: STARTS if len(used) > 1 else 0]:
        order, leaves = packed[at]
        now_s = start_s
        for _ in range(EXCHANGES):
            first, second = draw.choice(len(leaves), 2, replace=False)
            tried = leaves.copy()
            tried[[first, second]] = leaves[[second, first]]
            found = in_order(problem, order, tried)
            if (found_s := cost_s(quick, found)) <= now_s:
                leaves, now_s = tried, found_s
                if found_s < best_s:
                    best, best_s = found, found_s
    return best, best_s


def paired_positions(problem: PlacementProblem, class_of: Ints, counts: Ints) -> Ints:
    """Positions for counts [class, leaf]: those that communicate across classes under one leaf where counts allow.

    Classes one after the other, always the one with most bytes to classes that are placed; of its positions those first
    whose partners want one leaf most.
    """
    num_classes, num_leaves = counts.shape
    between = np.zeros((num_classes, num_classes))
    links: list[tuple[Ints, float]] = []
    for family in problem.families:
        for members, weight in zip(family.groups, family.weight.tolist(), strict=True):
            own = class_of[members]
            if len(np.unique(own)) == len(own) > 1:
                links.append((members, weight))
                between[np.ix_(own, own)] += weight
    np.fill_diagonal(between, 0.0)
    partners: list[list[tuple[Ints, float]]] = [[] for _ in range(problem.num_positions)]
    for members, weight in links:
        for position in members.tolist():
            partners[position].append((members, weight))
    leaf_of = np.full(problem.num_positions, -1, dtype=np.int64)
    waiting = set(range(num_classes))
    pull = np.zeros(num_classes)
    while waiting:
        chosen = max(waiting, key=lambda each: (pull[each], -each))
        waiting.remove(chosen)
        pull += between[chosen]
        positions = np.flatnonzero(class_of == chosen)
        wish = np.zeros((len(positions), num_leaves))
        for row, position in enumerate(positions.tolist()):
            for members, weight in partners[position]:
                there = leaf_of[members]
                np.add.at(wish[row], there[there >= 0], weight)
        left = counts[chosen].copy()
        for at in np.argsort(-wish.ravel(), kind="stable").tolist():
            row, leaf = divmod(at, num_leaves)
            if leaf_of[positions[row]] < 0 and left[leaf] > 0:
                leaf_of[positions[row]] = leaf
                left[leaf] -= 1
    return leaf_of


def side_by_side(leaf_of: Ints, class_of: Ints) -> Ints:
    """The same counts with the positions of a class in the order of their leaves."""
    found = np.empty_like(leaf_of)
    positions = np.lexsort((np.arange(len(leaf_of)), class_of))
    found[positions] = leaf_of[np.lexsort((leaf_of, class_of))]
    return found
