"""Which position of a job sits under which switch: an integer program over switches, not over nodes.

Positions 0 .. N-1 are the nodes of a job as its ranks see them; a leaf has ``free`` nodes, all alike.  A *family* is a
set of groups of positions that communicate in one phase; phases run one after the other, families of one phase together.

    minimise    sum over phases p of  count_p(t_p),   count_p(t) = max(share_p t, t - cover_p)
    subject to  t_p >= floor_p
    (1)         t_p >= sum over groups of p of load(group, b) / capacity_b       for every switch b of every tier
    (2)         every position sits under one leaf, a leaf takes at most its free nodes

``ring``: a group loads every switch that holds some, not all of its members with ``weight`` (its flow enters and
leaves once).  ``all_to_all``: with ``weight n (g - n) / g`` where n of its g members are inside.

Symmetry: nodes of a leaf are alike, and so are positions of one *class* (``_classes``): the program counts n[class,
leaf].  A family whose groups take one member of several classes (pipeline neighbours; rings across expert groups) is
counted at its least, ``max n - min n`` over those classes, which pairing members well reaches where such families form
no ring of classes.  So the bound is one of the whole problem; ``placed`` pairs, and counts the result exactly.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from solver.arrays import Array, Ints
from solver.constraint_program import Effort, WholeProgram, solve_whole

Kind = Literal["ring", "all_to_all"]
UNITS = 1_000_000
"""Whole numbers of time in the objective of the best order that is known before the search."""
PER_MILLE = 1_000
STARTS = 3
EXCHANGES = 700
"""Exchanges of two leaves that are tried from each of the best orders made without a search."""
ONE_SWITCH_SHARE = 0.15
"""Of the time, for bounds of one switch each."""
ONE_SWITCH_S = 0.2
"""Deterministic seconds of CP-SAT for one of them."""
MOST_CELLS = 40_000
"""Classes times leaves; beyond, only the orders that are made without a search are compared."""


@dataclass(frozen=True, slots=True)
class Family:
    """``groups``: positions [group, member]; ``weight``: bytes of each group (see the module's text); its phase."""

    kind: Kind
    groups: Ints
    weight: Array
    phase: int


@dataclass(frozen=True, slots=True)
class SwitchTier:
    """The switch of each leaf, and the bytes a second that each takes from below (infinite: no limit)."""

    switch_of_leaf: Ints
    capacity: Array


@dataclass(frozen=True, slots=True)
class Phase:
    """``floor_s``: no shorter wherever the positions sit; the rest as in the module's text."""

    floor_s: float = 0.0
    share: float = 1.0
    cover_s: float = 0.0

    def counted_s(self, seconds: float) -> float:
        """What of a phase of so many seconds counts."""
        longest_s = max(seconds, self.floor_s)
        return max(self.share * longest_s, longest_s - self.cover_s)


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """``free``: nodes of each leaf; their sum is at least ``num_positions``."""

    num_positions: int
    free: Ints
    tiers: Sequence[SwitchTier]
    families: Sequence[Family]
    phases: Sequence[Phase]
    kind_of_position: Ints | None = None
    """Positions of different kinds (pipeline stages) are never of one class; None = all may be."""


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


def cost_s(problem: PlacementProblem, leaf_of_position: Ints) -> float:
    """The objective of an order, group by group: no classes, no program."""
    return sum(
        phase.counted_s(seconds)
        for phase, seconds in zip(problem.phases, phase_seconds(problem, leaf_of_position), strict=True)
    )


def phase_seconds(problem: PlacementProblem, leaf_of_position: Ints) -> list[float]:
    """[phase]: the time of its most loaded switch."""
    longest = [0.0] * len(problem.phases)
    for tier in problem.tiers:
        switch, count = tier.switch_of_leaf[leaf_of_position], len(tier.capacity)
        load = np.zeros((len(problem.phases), count))
        for family in problem.families:
            load[family.phase] += _load(family, switch, count)
        for phase, seconds in enumerate((load / tier.capacity).max(axis=1)):
            longest[phase] = max(longest[phase], float(seconds))
    return longest


def _load(family: Family, switch: Ints, count: int) -> Array:
    """[switch]: the bytes of a family."""
    groups, size = family.groups.shape
    key = np.arange(groups)[:, None] * count + switch[family.groups]
    inside = np.bincount(key.ravel(), minlength=groups * count).reshape(groups, count)
    if family.kind == "ring":
        return family.weight @ ((inside > 0) & (inside < size))
    return family.weight @ (inside * (size - inside) / size)


def in_order(problem: PlacementProblem, positions: Ints, leaves: Ints) -> Ints:
    """Leaves filled one after the other with positions in an order: leaf of each position."""
    slots = np.repeat(leaves, problem.free[leaves])[: problem.num_positions]
    found = np.empty(problem.num_positions, dtype=np.int64)
    found[positions] = slots
    return found


def packed_orders(problem: PlacementProblem) -> list[tuple[Ints, Ints]]:
    """Positions and leaves in orders that need no search: groups of each family side by side, each filling leaves as
    listed and with the fullest first; positions as they are first.
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


def _exchanged_leaves(problem: PlacementProblem, effort: Effort) -> tuple[Ints, float]:
    """The best of ``packed_orders``, and of the orders that exchanging two leaves of the best of them gives."""
    draw, flat = np.random.default_rng(effort.seed), _flat(problem)
    packed = packed_orders(problem)
    starts = sorted((cost_s(flat, in_order(problem, *each)), at) for at, each in enumerate(packed))
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
            if (found_s := cost_s(flat, found)) <= now_s:
                leaves, now_s = tried, found_s
                if found_s < best_s:
                    best, best_s = found, found_s
    return best, best_s


def _flat(problem: PlacementProblem) -> PlacementProblem:
    """The same with one family for all of a kind, phase and size of groups: quicker to count."""
    alike: dict[tuple[Kind, int, int], list[Family]] = {}
    for family in problem.families:
        alike.setdefault((family.kind, family.phase, family.groups.shape[1]), []).append(family)
    joined = [
        Family(
            kind, np.concatenate([each.groups for each in some]), np.concatenate([each.weight for each in some]), phase
        )
        for (kind, phase, _), some in alike.items()
    ]
    return replace(problem, families=joined)


def _near_each_other(problem: PlacementProblem) -> Ints:
    """Leaves by the free nodes under their switch of each tier from above, most first."""
    keys = [-problem.free]
    for tier in problem.tiers[1:]:
        below = np.bincount(tier.switch_of_leaf, weights=problem.free, minlength=len(tier.capacity))
        keys += [tier.switch_of_leaf, -below[tier.switch_of_leaf].astype(np.int64)]
    return np.lexsort(keys).astype(np.int64)


def place(problem: PlacementProblem, effort: Effort, known: Sequence[Ints] = ()) -> Placed:
    """The best order found and a bound; ``known``: orders to start from, beside those of ``packed_orders``."""
    start = time.monotonic()
    best, best_s = _exchanged_leaves(problem, effort)
    for order in known:
        if (order_s := cost_s(problem, order)) < best_s:
            best, best_s = order, order_s
    least_s = sum(phase.counted_s(0.0) for phase in problem.phases)
    if best_s <= least_s * (1 + 1e-9) or not problem.families:
        return Placed(best, best_s, min(best_s, least_s))
    class_of = _classes(problem)
    if (int(class_of.max()) + 1) * len(problem.free) > MOST_CELLS:
        return Placed(best, best_s, least_s)
    bound_s = max(least_s, _one_switch_bound_s(problem, class_of, best, best_s, effort))
    if best_s <= bound_s * (1 + 1e-6):
        return Placed(best, best_s, min(best_s, bound_s))
    counting = _Counting(problem, class_of, best, best_s / UNITS)
    counting.program.add(dict.fromkeys(counting.gain, 1), low=int(bound_s / counting.unit_s))
    left = replace(effort, wall_s=max(0.1, effort.wall_s - (time.monotonic() - start)))
    solved = solve_whole(counting.program, counting.gain, left, counting.hint)
    if solved.values is not None:
        bound_s = max(bound_s, min(best_s, -solved.bound * counting.unit_s))
        counts = np.array([[solved.values[column] for column in row] for row in counting.columns])
        found = _paired(problem, class_of, counts)
        if (found_s := cost_s(problem, found)) < best_s:
            best, best_s = found, found_s
    return Placed(best, best_s, min(bound_s, best_s))


def _one_switch_bound_s(
    problem: PlacementProblem, class_of: Ints, known: Ints, known_s: float, effort: Effort
) -> float:
    """The greatest bound of programs that look at one switch, its free nodes, and one leaf without a limit for the rest.

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
        counting = _Counting(alone, class_of, np.where(here[known], 0, 1), known_s / UNITS)
        counting.program.add(dict.fromkeys(counting.gain, 1), low=int(found_s / counting.unit_s))
        limits = replace(effort, wall_s=max(0.05, end - time.monotonic()), deterministic_s=ONE_SWITCH_S)
        solved = solve_whole(counting.program, counting.gain, limits, counting.hint)
        if solved.values is not None:
            found_s = max(found_s, -solved.bound * counting.unit_s)
    return min(found_s, known_s)


def _classes(problem: PlacementProblem) -> Ints:
    """[position]: its class, from kinds of positions, then split by exchanges and by rings, those of many members first.

    A family that joins whole classes, or takes at most one member of each, splits nothing.
    """
    given = problem.kind_of_position
    start = np.zeros(problem.num_positions, dtype=np.int64) if given is None else given
    class_of = np.unique(start, return_inverse=True)[1].astype(np.int64)
    order = sorted(problem.families, key=lambda family: (family.kind == "ring", -family.groups.shape[1]))
    for family in order:
        number = np.full(problem.num_positions, -1, dtype=np.int64)
        number[family.groups] = np.arange(len(family.groups))[:, None]
        both = number * (class_of.max() + 1) + class_of
        member = number >= 0
        met = np.unique(both[member], return_counts=True)[1]
        whole = np.isin(class_of, np.unique(class_of[member])).sum() == member.sum()
        joins = whole and len(met) == len(np.unique(class_of[member]))
        if not joins and int(met.max()) > 1:
            class_of = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return class_of


@dataclass
class _Counting:
    """The program: its columns ``[class][leaf]`` count positions; ``hint``: a value for each column from ``known``."""

    problem: PlacementProblem
    class_of: Ints
    known: Ints
    unit_s: float
    program: WholeProgram = field(default_factory=WholeProgram)
    hint: list[int] = field(default_factory=list)
    columns: list[list[int]] = field(default_factory=list)
    gain: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problem = self.problem
        self._counts()
        phases = [self._phase(phase, seconds) for phase, seconds in zip(problem.phases, self._known_s(), strict=True)]
        for tier in problem.tiers:
            for switch, capacity in enumerate(tier.capacity.tolist()):
                leaves = np.flatnonzero(tier.switch_of_leaf == switch).tolist()
                if not np.isfinite(capacity):
                    continue
                loads: list[dict[int, float]] = [{} for _ in phases]
                for family in problem.families:
                    for column, amount in self._loads(family, leaves):
                        into = loads[family.phase]
                        into[column] = into.get(column, 0.0) + amount
                for phase, load in zip(phases, loads, strict=True):
                    scaled = {column: int(each / capacity / self.unit_s) for column, each in load.items()}
                    # Rounded down, so that the bound stays one; what is negative (min n) is rounded away from zero.
                    scaled = {
                        column: value - (load[column] < 0)
                        for column, value in scaled.items()
                        if value or load[column] < 0
                    }
                    if scaled:
                        self.program.add({phase: 1, **{column: -value for column, value in scaled.items()}}, low=0)

    def _column(self, lower: int, upper: int, value: int) -> int:
        self.hint.append(int(min(max(value, lower), upper)))
        return self.program.column(lower, upper)

    def _known_s(self) -> list[float]:
        return phase_seconds(self.problem, self.known)

    def _counts(self) -> None:
        """(2), with how many positions of each class the known order puts under each leaf."""
        sizes, free = np.bincount(self.class_of), self.problem.free.tolist()
        for number, size in enumerate(sizes.tolist()):
            there = np.bincount(self.known[self.class_of == number], minlength=len(free)).tolist()
            row = [self._column(0, min(size, most), there[leaf]) for leaf, most in enumerate(free)]
            self.columns.append(row)
            self.program.add(dict.fromkeys(row, 1), size, size)
        for leaf, most in enumerate(free):
            self.program.add({row[leaf]: 1 for row in self.columns}, high=most)

    def _phase(self, phase: Phase, known_s: float) -> int:
        """The column of a phase's seconds; that of what counts enters the objective."""
        floor, known = int(phase.floor_s / self.unit_s), int(max(known_s, phase.floor_s) / self.unit_s) + 1
        largest = max(100 * UNITS, 2 * known)
        seconds = self._column(floor, largest, known)
        cover = int(phase.cover_s / self.unit_s) + 1
        value = int(phase.counted_s(known_s) / self.unit_s) + 1
        counted = self._column(0, largest, value)
        share = int(phase.share * PER_MILLE)
        self.program.add({counted: PER_MILLE, seconds: -share}, low=0)
        self.program.add({counted: 1, seconds: -1}, low=-cover)
        self.gain[counted] = -1
        return seconds

    def _loads(self, family: Family, leaves: list[int]) -> list[tuple[int, float]]:
        """(1) for one switch: columns and the bytes that one of each stands for."""
        found: list[tuple[int, float]] = []
        room, size = int(self.problem.free[leaves].sum()), family.groups.shape[1]
        crossing: dict[int, int] = {}
        whole_groups = 0
        for classes, weights in self._kinds(family):
            parts = [[self.columns[each][leaf] for leaf in leaves] for each in classes]
            members = int(np.isin(self.class_of, classes).sum())
            if members != len(weights) * size:
                continue  # neither whole classes nor pairs: counted as nothing, so that the bound stays one
            if len(weights) > 1 and len(classes) == size:
                most, least = self._spread(parts, room)
                weight = float(weights.min()) * ((size - 1) / size if family.kind == "all_to_all" else 1.0)
                found += [(most, weight), (least, -weight)]
            elif len(weights) == 1 and family.kind == "ring":
                touched, whole = self._touched(parts, size, room)
                whole_groups, crossing[touched] = whole_groups + 1, 1
                found.append((touched, float(weights[0])))
                if whole is not None:
                    crossing[whole] = -1
                    found.append((whole, -float(weights[0])))
            elif len(weights) == 1:
                sent = self._exchange(parts, size, room, float(weights[0]))
                whole_groups += 1
                crossing |= {column: 1 for column, _ in sent}
                found += sent
        full = family.groups.size == self.problem.num_positions == self.problem.free.sum()
        if full and room % size and whole_groups == len(family.groups):
            # All nodes are used, so groups that lie whole under the switch do not fill it.  It says nothing new, but
            # the linear relaxation does not know it.
            self.program.add(crossing, low=1)
        return found

    def _kinds(self, family: Family) -> list[tuple[tuple[int, ...], Array]]:
        """Groups by the classes that they meet: one entry for groups that are whole classes, one for all that pair."""
        kinds: dict[tuple[int, ...], list[float]] = {}
        for members, weight in zip(self.class_of[family.groups].tolist(), family.weight.tolist(), strict=True):
            kinds.setdefault(tuple(sorted(set(members))), []).append(weight)
        return [(classes, np.array(weights)) for classes, weights in kinds.items()]

    def _sum(self, columns: list[int]) -> int:
        return sum(self.hint[column] for column in columns)

    def _spread(self, parts: list[list[int]], room: int) -> tuple[int, int]:
        """Columns of the most and the least positions of some classes under a switch."""
        sums = [self._sum(part) for part in parts]
        most, least = self._column(0, room, max(sums)), self._column(0, room, min(sums))
        for part in parts:
            self.program.add({most: 1, **dict.fromkeys(part, -1)}, low=0)
            self.program.add({least: -1, **dict.fromkeys(part, 1)}, low=0)
        return most, least

    def _touched(self, parts: list[list[int]], size: int, room: int) -> tuple[int, int | None]:
        """Columns that are 1 where a switch holds some of a group, and where it holds all."""
        every = [column for part in parts for column in part]
        here = self._sum(every)
        touched = self._column(0, 1, int(here > 0))
        self.program.add({touched: min(size, room), **dict.fromkeys(every, -1)}, low=0)
        if size > room:
            return touched, None
        whole = self._column(0, 1, int(here == size))
        self.program.add({whole: -size, **dict.fromkeys(every, 1)}, low=0)
        return touched, whole

    def _exchange(self, parts: list[list[int]], size: int, room: int, weight: float) -> list[tuple[int, float]]:
        """A column of 0 or 1 for each number of members under a switch, and what that number sends out."""
        every = [column for part in parts for column in part]
        here, most = self._sum(every), min(size, room)
        ones = [self._column(0, 1, int(here == number)) for number in range(1, most + 1)]
        self.program.at_most_one.append(ones)
        counted = {column: number for number, column in enumerate(ones, start=1)}
        self.program.add({**counted, **dict.fromkeys(every, -1)}, 0, 0)
        return [
            (column, weight * number * (size - number) / size) for column, number in counted.items() if number < size
        ]


def _paired(problem: PlacementProblem, class_of: Ints, counts: Ints) -> Ints:
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
