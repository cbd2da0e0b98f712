"""The number of nodes of a group of ranks: ranks are placed node by node, as launchers number them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise


def placement(ranks: tuple[int, ...], ranks_per_node: int | None) -> tuple[int | None, int | None, int | None]:
    """(nodes, members on each node, stride) of a group; None where unknown or not the same everywhere."""
    if not ranks:
        return None, None, None
    ordered = sorted(ranks)
    steps = {after - before for before, after in pairwise(ordered)}
    stride = steps.pop() if len(steps) == 1 else None
    if ranks_per_node is None:
        return None, None, stride
    members = Counter(rank // ranks_per_node for rank in ordered)
    counts = set(members.values())
    return len(members), counts.pop() if len(counts) == 1 else None, stride
