"""The numbering of ranks over the axes, and the groups of an axis: pure index arithmetic.

A ``RankGrid`` lists its axes innermost (adjacent ranks) first, like the digits of a mixed-radix number::

    rank = sum_i coordinate_i * stride_i        stride_i = product of the sizes before axis i

An axis, or several axes taken together, forms groups; each is a translate of one pattern of ``(size, stride)`` factors.
Neighbouring axes fold into one factor, so most groups are a single ``size`` and ``stride``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class GroupPattern:
    """The shape shared by all groups of an axis: factors (size, stride), innermost first, each larger than one.

    A group of one has no factors.
    """

    factors: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Ranks in a group."""
        return prod(size for size, _ in self.factors)

    @property
    def stride(self) -> int:
        """Distance of the nearest members; 1 for a group of one."""
        return self.factors[0][1] if self.factors else 1

    @property
    def period(self) -> int:
        """Ranks after which the groups repeat: the outermost factor's size times stride; 1 for a group of one."""
        return self.factors[-1][0] * self.factors[-1][1] if self.factors else 1

    @property
    def is_regular(self) -> bool:
        """True where ``size`` and ``stride`` alone tell the members."""
        return len(self.factors) <= 1

    def stays_within(self, block: int, world_size: int) -> bool:
        """Does every group lie inside one block of ``block`` consecutive ranks?

        Exactly when one block holds the world or whole periods: a block boundary inside a period splits the group
        that starts the period, or the one that ends it, since a group spans at least half of its period.
        """
        return not self.factors or block >= world_size or block % self.period == 0

    def members_within(self, block: int) -> int:
        """Members of one group in a block of ``block`` consecutive ranks.

        Exact where block and strides divide each other; otherwise rounded down (more, smaller parts: the slow side).
        """
        return prod(min(size, max(1, block // stride)) for size, stride in self.factors)


@dataclass(frozen=True, slots=True)
class RankGrid:
    """Axes and their sizes, innermost first."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return prod(self.sizes)

    def stride(self, name: str) -> int:
        """Distance in ranks of two neighbours along one axis."""
        return prod(self.sizes[: self.names.index(name)])

    def coordinates(self, rank: int) -> dict[str, int]:
        """Coordinate of a rank along every axis."""
        place = {}
        for name, size in zip(self.names, self.sizes, strict=True):
            rank, place[name] = divmod(rank, size)
        return place

    def places(self, ranks: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Coordinates of many ranks along every axis."""
        return {name: ranks // self.stride(name) % size for name, size in zip(self.names, self.sizes, strict=True)}

    def rank(self, coordinates: dict[str, int]) -> int:
        """The rank at these coordinates; an axis left out is at 0.  Inverse of ``coordinates``."""
        return sum(coordinate * self.stride(name) for name, coordinate in coordinates.items())

    def pattern(self, names: Sequence[str]) -> GroupPattern:
        """The pattern of the groups over one or several axes together."""
        factors: list[tuple[int, int]] = []
        stride = 1
        for name, size in zip(self.names, self.sizes, strict=True):
            if name in names and size > 1:
                below, below_stride = factors[-1] if factors else (0, 0)
                if below * below_stride == stride:
                    factors[-1] = (below * size, below_stride)
                else:
                    factors.append((size, stride))
            stride *= size
        return GroupPattern(tuple(factors))

    def groups(self, names: Sequence[str]) -> NDArray[np.int64]:
        """All groups over these axes, one a row; members and rows in ascending order."""
        # C order runs the last index fastest: reverse, so that the innermost axis is last.
        reverse = self.names[::-1]
        ranks = np.arange(self.world_size, dtype=np.int64).reshape(self.sizes[::-1])
        inside = [index for index, name in enumerate(reverse) if name in names]
        outside = [index for index, name in enumerate(reverse) if name not in names]
        size = prod(self.sizes[::-1][index] for index in inside)
        return ranks.transpose([*outside, *inside]).reshape(-1, size)
