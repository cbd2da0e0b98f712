"""The nodes of each switch of a tree, level by level: tiers for ``profiles.topology``, innermost first.

A switch's level is its height: 1 where no switch hangs below it.  Nodes get numbers in the order in which they are
first seen, and tiers have no names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from profiles.errors import DocumentInvalid
from profiles.topology import NetworkTier

TIER_NAMES = ("leaf", "spine", "core")
_MAX_HEIGHT = 40


def tier_name(level: int) -> str:
    """Word for level 1, 2, 3, ...: leaf, spine, core, then tier-4."""
    return TIER_NAMES[level - 1] if level <= len(TIER_NAMES) else f"tier-{level}"


@dataclass(slots=True)
class SwitchTree:
    """Switches with the switches and the nodes directly below each."""

    switches: dict[str, list[str]] = field(default_factory=dict)
    nodes: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def add(self, switch: str, *, switches: list[str] | None = None, nodes: list[str] | None = None) -> None:
        """Hang switches and nodes below ``switch``; may be called again for the same switch."""
        self.switches.setdefault(switch, []).extend(switches or [])
        self.nodes.setdefault(switch, []).extend(nodes or [])
        for node in nodes or []:
            self.numbers.setdefault(node, len(self.numbers))

    def node_names(self, where: str) -> list[str]:
        """The nodes leaf by leaf, the tree walked from its roots in the order in which they were added.

        A root without switches below it comes after the others.  Raises DocumentInvalid for a ring of switches.
        """
        below = {child for children in self.switches.values() for child in children}
        waiting = [name for name in self.switches if name not in below]
        waiting.sort(key=lambda name: not self.switches[name])
        waiting.reverse()
        found: list[str] = []
        walked: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in walked:
                walked.add(name)
                found += self.nodes.get(name, [])
                waiting += reversed(self.switches.get(name, []))
        if missed := [name for name in self.switches if name not in walked]:
            what = f"the switches {', '.join(missed[:5])} form a ring"
            raise DocumentInvalid(what, where=where, hint="check Switches=")
        return found

    def tiers(self, where: str) -> tuple[tuple[NetworkTier, ...], tuple[str, ...]]:
        """Tiers and what is irregular about them.  Raises DocumentInvalid for a ring of switches or no node at all."""
        if not self.numbers:
            raise DocumentInvalid("no switch holds a node", where=where, hint="is this the whole file?")
        heights: dict[str, int] = {}
        below: dict[str, frozenset[int]] = {}
        for switch in self.switches:
            self._measure(switch, heights, below, [], where)
        irregular = self._missing(heights)
        tiers: list[NetworkTier] = []
        for level in range(1, max(heights.values()) + 1):
            found = {below[switch] for switch in heights if heights[switch] == level and below[switch]}
            if not found:
                continue
            groups = tuple(sorted(tuple(sorted(group)) for group in found))
            tiers.append(NetworkTier(name=tier_name(level), groups=groups))
            irregular += irregularities(tier_name(level), groups, len(self.numbers))
        return tuple(tiers), tuple(irregular)

    def _measure(
        self,
        switch: str,
        heights: dict[str, int],
        below: dict[str, frozenset[int]],
        path: list[str],
        where: str,
    ) -> None:
        if switch in heights:
            return
        if switch in path or len(path) > _MAX_HEIGHT:
            raise DocumentInvalid("the switches hang in a ring, not a tree", where=where, hint="check Switches=")
        known = [child for child in self.switches.get(switch, []) if child in self.switches]
        for child in known:
            self._measure(child, heights, below, [*path, switch], where)
        own = frozenset(self.numbers[node] for node in self.nodes.get(switch, []))
        below[switch] = own.union(*(below[child] for child in known))
        heights[switch] = 1 + max((heights[child] for child in known), default=0)

    def _missing(self, heights: dict[str, int]) -> list[str]:
        named = {child for children in self.switches.values() for child in children}
        unknown = len(named - heights.keys())
        empty = sum(1 for switch in heights if heights[switch] == 1 and not self.nodes.get(switch))
        found: list[str] = []
        if unknown:
            found.append(f"{unknown} switches are named but not described")
        if empty:
            found.append(f"{empty} leaf switches hold no node")
        return found


def irregularities(name: str, groups: tuple[tuple[int, ...], ...], num_nodes: int) -> list[str]:
    """What breaks the symmetry of one tier, in words: groups of unequal size, nodes outside, nodes in two groups."""
    found: list[str] = []
    sizes = sorted({len(group) for group in groups})
    if len(sizes) > 1:
        found.append(f"{name} groups hold {sizes[0]} to {sizes[-1]} nodes")
    members = [node for group in groups for node in group]
    outside = num_nodes - len(set(members))
    if outside:
        found.append(f"{outside} nodes are in no {name} group")
    if len(members) != len(set(members)):
        found.append(f"{len(members) - len(set(members))} nodes are in several {name} groups")
    return found
