"""Meshes and the links that each axis uses.  Ranks are row-major: the last axis holds neighbours."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property

from planner.errors import DocumentInvalid
from planner.shard.sharding_plan import MeshAxis

NAMES = {1: ("inner",), 2: ("outer", "inner"), 3: ("outer", "middle", "inner")}
MOST_AXES = 3


@dataclass(frozen=True)
class MeshShape:
    """Sizes of the axes, outermost first."""

    sizes: tuple[int, ...]

    @property
    def num_axes(self) -> int:
        """How many axes."""
        return len(self.sizes)

    @property
    def num_devices(self) -> int:
        """How many ranks."""
        return math.prod(self.sizes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What people call the axes."""
        return NAMES.get(self.num_axes, tuple(f"axis{index}" for index in range(self.num_axes)))

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Distance in ranks between neighbours of each axis."""
        return tuple(math.prod(self.sizes[index + 1 :]) for index in range(self.num_axes))

    @cached_property
    def divisors(self) -> tuple[int, ...]:
        """The smallest prime factor of each axis: what its sharding rules are asked with."""
        return tuple(smallest_prime_factor(size) for size in self.sizes)

    @property
    def text(self) -> str:
        """``2x8``."""
        return "x".join(str(size) for size in self.sizes)

    @property
    def axes(self) -> tuple[MeshAxis, ...]:
        """As documents say it."""
        rows = zip(self.names, self.sizes, self.strides, strict=True)
        return tuple(MeshAxis(name=name, size=size, stride=stride) for name, size, stride in rows)


def read_mesh(text: str) -> MeshShape:
    """``2x8`` -> its sizes; axes of one rank are dropped.  Raises DocumentInvalid."""
    if not re.fullmatch(r"[1-9]\d{0,5}(x[1-9]\d{0,5}){0,3}", text):
        raise DocumentInvalid(
            f"{text!r} is no mesh", where="--mesh", hint="write sizes from the outermost axis: 16, 2x8, 2x2x8, or auto"
        )
    sizes = tuple(int(part) for part in text.split("x") if part != "1")
    return MeshShape(sizes or (1,))


def factorisations(devices: int, most_axes: int = MOST_AXES) -> tuple[MeshShape, ...]:
    """Every mesh of up to ``most_axes`` axes for so many devices, fewest axes first."""
    found: list[tuple[int, ...]] = [(devices,)]
    shapes = list(found)
    for _ in range(most_axes - 1):
        found = [
            (*shape[:-1], first, shape[-1] // first)
            for shape in found
            for first in range(2, shape[-1])
            if shape[-1] % first == 0
        ]
        shapes += found
    return tuple(MeshShape(shape) for shape in shapes)


def smallest_prime_factor(number: int) -> int:
    """The smallest prime that divides ``number``; 1 for 1."""
    return next((factor for factor in range(2, math.isqrt(number) + 1) if number % factor == 0), number)
