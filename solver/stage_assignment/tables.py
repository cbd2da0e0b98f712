"""The stage-assignment problem and its answer: arrays in, choices out.

Shape letters: O options (sub-meshes: a pool and a number of its units), K policies of an option, E positions counted
from the end of the line, Z classes of spans, A = L + 1 starts, C counts, P pools.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from solver.arrays import Array, Ints


@dataclass(frozen=True)
class AssignmentTables:
    """Costs of every stage that could be built.

    ``pool_units`` int[P] units of each pool; ``option_pool`` and ``option_units`` int[O] where an option lives and what
    it takes.  ``time`` and ``late`` float[O, K, E, Z]: stable time, and what is paid once; an infinite ``time`` forbids
    the entry (it does not fit).  The last position stands for all further ones.
    ``span_class`` int[A, C]: class of the ``c + 1`` items from ``a`` on; -1 = not allowed.
    ``hop`` float[O, O]: cost between a stage of the first option and the next stage, of the second.
    ``pace_share`` float[O, E, Z]: what part of an entry's time counts in the peak; None = all of it.
    ``pace_mix`` float[E, 3]: how much of its own time, of the times behind it and of the hops behind it counts in the
    peak too (the larger of both counts); None = nothing.
    """

    pool_units: Ints
    option_pool: Ints
    option_units: Ints
    time: Array
    late: Array
    span_class: Ints
    hop: Array
    fewest_stages: int = 1
    most_stages: int = 1_000_000
    pace_share: Array | None = None
    pace_mix: Array | None = None

    @cached_property
    def pace(self) -> Array:
        """What each entry counts for in the peak whatever stands behind it: the shape of ``time``."""
        if self.pace_share is None:
            return self.time
        paced: Array = self.time * self.pace_share[:, None]
        return paced

    @property
    def num_items(self) -> int:
        """L."""
        return int(self.span_class.shape[0]) - 1

    @property
    def num_options(self) -> int:
        """O."""
        return int(self.option_pool.shape[0])

    def position(self, from_end: int) -> int:
        """Row of ``time`` for the stage that has ``from_end - 1`` stages behind it."""
        return min(from_end, int(self.time.shape[2])) - 1

    def stage_limit(self) -> int:
        """No assignment has more stages: items and units run out."""
        if not len(self.option_units):
            return 0
        smallest = [
            int(self.option_units[self.option_pool == pool].min(initial=np.iinfo(np.int64).max))
            for pool in range(len(self.pool_units))
        ]
        by_units = sum(int(units) // size for units, size in zip(self.pool_units, smallest, strict=True))
        return min(self.most_stages, self.num_items, by_units)


class AssignmentObjective(Protocol):
    """F of the mathematics (``assign``): never falls when peak, total, hops or late grows."""

    @property
    def hides(self) -> float:
        """Part of the time of earlier stages under which a later stage hides what it pays once: 0 to 1."""

    def value(self, peak: Array, total: Array, hops: Array, late: Array, stages: Array) -> Array:
        """F, element by element."""

    def least(self, peak: Array, total: Array, hops: Array, late: Array, most_stages: int) -> Array:
        """No more than ``value`` for any number of stages up to ``most_stages``; never falls either.

        It must grow with ``total`` at least as fast as with ``late``.
        """


@dataclass(frozen=True, slots=True)
class StageChoice:
    """One stage of an answer: its items, its option and its policy."""

    start: int
    count: int
    option: int
    policy: int


@dataclass(frozen=True, slots=True)
class AssignmentValue:
    """The arguments of F, and F."""

    peak: float
    total: float
    hops: float
    late: float
    value: float


@dataclass(frozen=True, slots=True)
class Assignment:
    """An answer with its proof: ``bound`` is no more than the best value of the whole space."""

    stages: tuple[StageChoice, ...]
    value: AssignmentValue
    bound: float
    labels: int
    """Partial assignments that were written out."""
    windows: int
    """Enclosures of the peak that were solved."""

    @property
    def optimal(self) -> bool:
        """Whether the bound meets the value."""
        return self.bound >= self.value.value * (1 - 1e-9)


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search below a cutoff came to."""

    found: Assignment | None
    bound: float
    """No assignment has an F below it; no more than the cutoff unless there is no assignment at all."""
    complete: bool
    """Whether it did not have to stop early: the bound is then the least F, or the cutoff."""
    grown: int
    """Labels before those without hope or dominated were dropped."""
    labels: int
    windows: int
