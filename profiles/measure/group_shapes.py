"""The groups of ranks that a mesh can make: every size s and stride t with s * t dividing the world.

    groups of (s, t): { b * s * t + o + i * t : i < s }      for every block b and offset o < t

An axis of a mesh is one such pair: tensor parallel ranks are neighbours (t = 1), data parallel ranks of tp = 8 stand 8
apart.  The placement on nodes is what the time depends on; all groups of one pair share it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

Placement = Literal["contiguous", "strided", "one_per_node", "several_per_node"]


@dataclass(frozen=True, slots=True)
class GroupShape:
    """Groups of ``size`` ranks, ``stride`` apart; ``ranks_per_node`` of each group on each of ``num_nodes`` nodes."""

    size: int
    stride: int
    world_size: int
    num_nodes: int
    ranks_per_node: int

    @property
    def placement(self) -> Placement:
        """Where the ranks of one group stand."""
        if self.num_nodes == 1:
            return "contiguous" if self.stride == 1 else "strided"
        return "one_per_node" if self.ranks_per_node == 1 else "several_per_node"

    @property
    def num_siblings(self) -> int:
        """Groups of this shape that a mesh has at once."""
        return self.world_size // self.size

    def groups(self) -> list[tuple[int, ...]]:
        """All groups; the first holds rank 0, and every rank is in exactly one."""
        return _groups(self.size, self.stride, self.world_size)


def group_shapes(world_size: int, devices_per_node: int) -> list[GroupShape]:
    """All shapes with at least two ranks, the most telling first.

    First the whole world, whole nodes and one rank of each node; then the rest by size.  Shapes whose groups lie
    unevenly on the nodes are left out: no mesh that a planner emits makes them.
    """
    found = [
        shape
        for stride in _divisors(world_size)
        for size in _divisors(world_size // stride)
        if size > 1 and (shape := _shape(size, stride, world_size, devices_per_node)) is not None
    ]
    return sorted(found, key=lambda shape: (_rank_of_value(shape, devices_per_node), -shape.size, shape.stride))


def _rank_of_value(shape: GroupShape, devices_per_node: int) -> int:
    whole_node = shape.placement == "contiguous" and shape.size == devices_per_node
    across = shape.placement == "one_per_node" and shape.size * devices_per_node == shape.world_size
    return 0 if shape.size == shape.world_size or whole_node or across else 1


def _shape(size: int, stride: int, world_size: int, devices_per_node: int) -> GroupShape | None:
    counts = set()
    for group in _groups(size, stride, world_size):
        on_nodes = Counter(rank // devices_per_node for rank in group)
        counts.add((len(on_nodes), *sorted(set(on_nodes.values()))))
    # One entry: all groups alike; two numbers in it: every node of a group holds as many of its ranks.
    only = counts.pop() if len(counts) == 1 else ()
    return GroupShape(size, stride, world_size, only[0], only[1]) if len(only) == 2 else None


def _groups(size: int, stride: int, world_size: int) -> list[tuple[int, ...]]:
    span = size * stride
    return [
        tuple(range(block + offset, block + span, stride))
        for block in range(0, world_size, span)
        for offset in range(stride)
    ]


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
