"""The best order of positions, and a bound on every order: packed orders, programs of one switch, the whole."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from solver.arrays import Ints
from solver.constraint_program import Effort, solve_whole
from solver.placement.counting import UNITS, Counting, classes
from solver.placement.orders import exchanged_leaves, paired_positions, side_by_side
from solver.placement.problem import PlacementProblem, SwitchTier, cost_s, flat

ONE_SWITCH_SHARE = 0.15
"""Of the time, for bounds of one switch each."""
ONE_SWITCH_S = 0.2
"""Deterministic seconds of CP-SAT for one of them."""
MOST_CELLS = 40_000
"""Classes times leaves; beyond, only the orders that are made without a search are compared."""


@dataclass(frozen=True, slots=True)
class Placed:
    """``leaf_of_position``; what it costs; no order costs less than ``bound_s``."""

    leaf_of_position: Ints
    objective_s: float
    bound_s: float

    @property
    def gap(self) -> float:
        """How much less another order could cost, at most, as a part."""
        return max(0.0, 1.0 - self.bound_s / self.objective_s) if self.objective_s > 0 else 0.0


def place(problem: PlacementProblem, effort: Effort, known: Sequence[Ints] = ()) -> Placed:
    """The best order found and a bound; ``known``: orders to start from, beside those of ``packed_orders``."""
    start, problem = time.monotonic(), _forced(problem)
    best, best_s = exchanged_leaves(problem, effort.seed)
    for order in known:
        if (order_s := cost_s(problem, order)) < best_s:
            best, best_s = order, order_s
    least_s = sum(phase.counted_s(0.0) for phase in problem.phases)
    if best_s <= least_s * (1 + 1e-9) or not problem.families:
        return Placed(best, best_s, min(best_s, least_s))
    class_of = classes(problem)
    if (int(class_of.max()) + 1) * len(problem.free) > MOST_CELLS:
        return Placed(best, best_s, least_s)
    bound_s = max(least_s, _one_switch_bound_s(problem, class_of, best, best_s, effort))
    if best_s <= bound_s * (1 + 1e-6):
        return Placed(best, best_s, min(best_s, bound_s))
    counting = Counting(problem, class_of, best, best_s / UNITS)
    counting.program.add(dict.fromkeys(counting.gain, 1), low=int(bound_s / counting.unit_s))
    left = replace(effort, wall_s=max(0.1, effort.wall_s - (time.monotonic() - start)))
    solved = solve_whole(counting.program, counting.gain, left, counting.hint)
    if solved.values is not None:
        bound_s = max(bound_s, min(best_s, -solved.bound * counting.unit_s))
        counts = np.array([[solved.values[column] for column in row] for row in counting.columns])
        paired = paired_positions(problem, class_of, counts)
        for found in (paired, side_by_side(paired, class_of)):
            if (found_s := cost_s(problem, found)) < best_s:
                best, best_s = found, found_s
    return Placed(best, best_s, min(bound_s, best_s))


def _forced(problem: PlacementProblem) -> PlacementProblem:
    """The same with floors of the phases raised to what no order avoids.

    Where all nodes are used, groups of ``g`` that lie whole under a switch leave ``r = nodes mod g`` of them to groups
    that do not: a ring crosses at least once, an exchange sends at least ``r (g - r) / g`` (concave: one group has r).
    """
    if problem.free.sum() != problem.num_positions:
        return problem
    forced = np.zeros(len(problem.phases))
    for tier in problem.tiers:
        rooms = np.bincount(tier.switch_of_leaf, weights=problem.free, minlength=len(tier.capacity))
        load = np.zeros((len(problem.phases), len(rooms)))
        for family in flat(problem).families:
            size = family.groups.shape[1]
            if family.groups.size == problem.num_positions == len(np.unique(family.groups)):
                rest = rooms % size
                amount = (rest > 0) if family.kind == "ring" else rest * (size - rest) / size
                load[family.phase] += float(family.weight.min()) * amount
        forced = np.maximum(forced, (load / tier.capacity).max(axis=1))
    raised = [
        replace(phase, floor_s=max(phase.floor_s, float(least)))
        for phase, least in zip(problem.phases, forced, strict=True)
    ]
    return replace(problem, phases=raised)


def _one_switch_bound_s(
    problem: PlacementProblem, class_of: Ints, known: Ints, known_s: float, effort: Effort
) -> float:
    """The greatest bound of programs that look at one switch, and at one leaf without a limit for the rest.

    Each is small, so that it is often solved, where the linear relaxation of the whole spreads every class evenly.
    """
    end, found_s = time.monotonic() + ONE_SWITCH_SHARE * effort.wall_s, 0.0
    seen: set[tuple[int, float]] = set()
    switches = [
        (int(problem.free[tier.switch_of_leaf == switch].sum()), capacity, tier.switch_of_leaf == switch)
        for tier in problem.tiers
        for switch, capacity in enumerate(tier.capacity.tolist())
    ]
    # Switches with little capacity for their nodes, then few nodes: those bind most often.
    for room, capacity, here in sorted(switches, key=lambda each: (each[1] / max(each[0], 1), each[0])):
        rest = int(problem.free.sum()) - room
        if (room, capacity) in seen or not np.isfinite(capacity) or not room or not rest or time.monotonic() > end:
            continue
        seen.add((room, capacity))
        tier = SwitchTier(np.arange(2), np.array([capacity, np.inf]))
        alone = replace(problem, free=np.array([room, rest]), tiers=(tier,))
        counting = Counting(alone, class_of, np.where(here[known], 0, 1), known_s / UNITS)
        counting.program.add(dict.fromkeys(counting.gain, 1), low=int(found_s / counting.unit_s))
        limits = replace(effort, wall_s=max(0.05, end - time.monotonic()), deterministic_s=ONE_SWITCH_S)
        solved = solve_whole(counting.program, counting.gain, limits, counting.hint)
        if solved.values is not None:
            found_s = max(found_s, -solved.bound * counting.unit_s)
    return min(found_s, known_s)
