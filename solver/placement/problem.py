"""Which position of a job sits under which switch: an integer program over switches, not over nodes.

Positions 0 .. N-1 are the nodes of a job as its ranks see them; a leaf has ``free`` nodes, all alike.  A *family* is a
set of groups of positions that communicate in one phase; phases run one after the other, families of a phase together.

    minimise    sum over phases p of  count_p(t_p),   count_p(t) = max(share_p t, t - cover_p)
    subject to  t_p >= floor_p
    (1)         t_p >= sum over groups of p of load(group, b) / capacity_b       for every switch b of every tier
    (2)         every position sits under one leaf, a leaf takes at most its free nodes

``ring``: a group loads a switch with ``weight`` for every member under it whose next member is not (a group of two has
both ways).  Members of one class in the right order leave a switch once, and that is what the program counts.
``all_to_all``: with ``weight n (g - n) / g`` where n of its g members are inside.

Symmetry: nodes of a leaf are alike, and so are positions of one *class* (``classes``): the program counts n[class,
leaf].  A family whose groups take one member of several classes (pipeline neighbours; rings across expert groups) is
counted at its least, ``max n - min n`` over those classes, which pairing members well reaches where such families form
no ring of classes.  So the bound is one of the whole problem; positions are paired and the result is counted exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from solver.arrays import Array, Ints

Kind = Literal["ring", "all_to_all"]


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
    here = switch[family.groups]
    if family.kind == "ring":
        leaving = here != np.roll(here, -1, axis=1)
        weight = np.broadcast_to(family.weight[:, None], here.shape)
        return np.bincount(here[leaving], weights=weight[leaving], minlength=count).astype(np.float64)
    groups, size = family.groups.shape
    key = np.arange(groups)[:, None] * count + here
    inside = np.bincount(key.ravel(), minlength=groups * count).reshape(groups, count)
    sent: Array = family.weight @ (inside * (size - inside) / size)
    return sent


def flat(problem: PlacementProblem) -> PlacementProblem:
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
