"""The program that counts positions of a class under a leaf; its mathematics: ``solver.placement.problem``."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from solver.arrays import Array, Ints
from solver.constraint_program import WholeProgram
from solver.placement.problem import Family, Phase, PlacementProblem, phase_seconds

UNITS = 1_000_000
"""Whole numbers of time in the objective of the best order that is known before the search."""
PER_MILLE = 1_000


def classes(problem: PlacementProblem) -> Ints:
    """[position]: its class, from kinds of positions, split by exchanges, then by rings from many members to few.

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
class Counting:
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
