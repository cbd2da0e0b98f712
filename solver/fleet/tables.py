"""The question of an allocation: jobs, each with a table of choices, over the nodes of pools; and its answer.

A job takes one of its choices or waits.  A choice is a number of nodes of one pool.  The free nodes of a pool lie in
blocks (nodes under one leaf switch); a choice may say in how many blocks its nodes may lie at the most, or that it is
exactly the nodes that the job holds (``held``), which is what staying means.  What a choice is worth stands in goals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Choice:
    """So many nodes of a pool."""

    pool: int
    nodes: int
    most_blocks: int | None = None
    """In how many blocks they may lie; None = in any number."""
    held: Mapping[int, int] | None = None
    """Block -> nodes of it: the choice is these nodes and no others."""


@dataclass(frozen=True, slots=True)
class FleetTables:
    """``free[pool][block]``: nodes that the jobs may have, those that they hold now among them."""

    free: tuple[tuple[int, ...], ...]
    jobs: tuple[tuple[Choice, ...], ...]
    must_run: tuple[bool, ...]
    """Jobs that may not wait."""
    held: tuple[Mapping[tuple[int, int], int], ...]
    """(pool, block) -> nodes that each job holds now."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be as large as possible: ``values[job][choice]``; a job that waits gives nothing.

    ``sum``: the sum over jobs.  ``least``: the least value of the jobs that run.
    """

    name: str
    kind: Literal["sum", "least"]
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Reached:
    """A goal's value, and what no allocation exceeds that reaches the goals before it as far as this one does."""

    name: str
    value: float
    bound: float
    proved: bool
    """No better one exists, to within the rounding of the values (``ROUNDING`` of the largest, a job)."""

    @property
    def gap(self) -> float:
        """How much better another allocation could be, at most, as a part of the larger figure."""
        size = max(abs(self.value), abs(self.bound))
        return 0.0 if size == 0.0 else max(0.0, self.bound - self.value) / size


@dataclass(frozen=True, slots=True)
class Allocation:
    """The choice of each job (None = it waits) and how far the goals are reached, the most important first."""

    chosen: tuple[int | None, ...]
    reached: tuple[Reached, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Nodes of each job in each block of its pool, and how many blocks all jobs together touch."""

    blocks: tuple[Mapping[int, int], ...]
    touched: int
    least_touched: int
    """No placement of the same choices touches fewer."""


class CannotAllocate(Exception):
    """No allocation gives every job of ``must_run`` one of its choices."""
