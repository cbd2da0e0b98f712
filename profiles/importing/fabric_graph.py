"""Nodes that share leaf switches, spines or cores, from cables between hosts and switches of any source.

Leaf switches that serve the same hosts form one leaf group: in a rail-optimised fabric the eight leaves of a unit.  A
switch's level is its distance from the nearest leaf; two groups belong together at level L when switches up to level L
join them.  Hosts with far fewer cables than most (storage, management) are left out and counted.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from profiles.importing.switch_tree import irregularities, tier_name
from profiles.topology import NetworkTier


@dataclass(frozen=True, slots=True)
class Cable:
    """One link; ``first`` and ``second`` are names of switches or hosts; ports where known."""

    first: str
    second: str
    rate_bytes_per_s: float | None = None
    first_port: str = ""
    second_port: str = ""


@dataclass(slots=True)
class FabricGraph:
    """Switches, hosts and cables."""

    switches: set[str] = field(default_factory=set)
    hosts: dict[str, list[Cable]] = field(default_factory=dict)
    between: list[Cable] = field(default_factory=list)

    def add(self, cable: Cable) -> None:
        """Add a cable of which at least one end is a switch known in ``switches``."""
        first_is_switch, second_is_switch = cable.first in self.switches, cable.second in self.switches
        if first_is_switch and second_is_switch:
            self.between.append(cable)
        elif first_is_switch != second_is_switch:
            if second_is_switch:
                cable = Cable(cable.second, cable.first, cable.rate_bytes_per_s, cable.second_port, cable.first_port)
            self.hosts.setdefault(cable.second, []).append(cable)


@dataclass(frozen=True, slots=True)
class Fabric:
    """What the graph says: nodes by name in order, cables of each, tiers, and what is irregular."""

    nodes: tuple[str, ...]
    num_nics: int
    nic_rate_bytes_per_s: float | None
    tiers: tuple[NetworkTier, ...]
    rail_optimized: bool | None
    irregular: tuple[str, ...]


def fabric_of(graph: FabricGraph) -> Fabric | None:
    """The fabric; None if no host hangs on a switch."""
    if not graph.hosts:
        return None
    usual = _usual(len(cables) for cables in graph.hosts.values())
    nodes = [host for host, cables in graph.hosts.items() if 2 * len(cables) > usual]
    irregular: list[str] = []
    if len(nodes) < len(graph.hosts):
        left_out = len(graph.hosts) - len(nodes)
        irregular.append(f"{left_out} hosts with few NICs are left out (storage, management)")
    uneven = sum(1 for host in nodes if len(graph.hosts[host]) != usual)
    if uneven:
        irregular.append(f"{uneven} nodes have another number of NICs than the usual {usual}")
    numbers = {host: index for index, host in enumerate(nodes)}
    cables = [cable for host in nodes for cable in graph.hosts[host]]
    rates = Counter(cable.rate_bytes_per_s for cable in cables if cable.rate_bytes_per_s)
    if len(rates) > 1:
        irregular.append(f"NICs run at {len(rates)} different rates")
    tiers = _tiers(graph, nodes, numbers, irregular)
    return Fabric(tuple(nodes), usual, min(rates, default=None), tiers, _rails(graph, nodes, usual), tuple(irregular))


def _usual(counts: Iterable[int]) -> int:
    found = Counter(counts)
    return max(found, key=lambda count: (found[count] * count, count))


def _rails(graph: FabricGraph, nodes: list[str], usual: int) -> bool | None:
    """Whether each NIC of a node sits on a leaf of its own; None for a single NIC."""
    if usual < 2:
        return None
    alone = sum(1 for node in nodes if len({cable.first for cable in graph.hosts[node]}) == len(graph.hosts[node]))
    return 2 * alone > len(nodes)


class _Sets:
    """Union of switches and groups."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, item: str) -> str:
        self._parent.setdefault(item, item)
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def join(self, first: str, second: str) -> None:
        self._parent[self.find(first)] = self.find(second)


def _tiers(
    graph: FabricGraph, nodes: list[str], numbers: dict[str, int], irregular: list[str]
) -> tuple[NetworkTier, ...]:
    levels = _levels(graph, nodes)
    sets = _Sets()
    for node in nodes:
        for cable in graph.hosts[node][1:]:
            sets.join(graph.hosts[node][0].first, cable.first)
    tiers: list[NetworkTier] = []
    for level in range(1, max(levels.values()) + 1):
        if level > 1:
            for cable in graph.between:
                if max(levels.get(cable.first, 99), levels.get(cable.second, 99)) <= level:
                    sets.join(cable.first, cable.second)
        groups: dict[str, list[int]] = {}
        for node in nodes:
            groups.setdefault(sets.find(graph.hosts[node][0].first), []).append(numbers[node])
        if tiers and len(groups) == len(tiers[-1].groups):
            continue
        tiers.append(_tier(graph, level, levels, groups, sets, set(nodes)))
        irregular += irregularities(tiers[-1].name, tiers[-1].groups, len(nodes))
    if len(tiers[-1].groups) > 1:
        irregular.append(f"the {len(tiers[-1].groups)} {tiers[-1].name} groups are not joined by any switch seen")
    return tuple(tiers)


def _levels(graph: FabricGraph, nodes: list[str]) -> dict[str, int]:
    """Distance of each switch from the nearest leaf, leaves being 1."""
    near: dict[str, set[str]] = {}
    for cable in graph.between:
        near.setdefault(cable.first, set()).add(cable.second)
        near.setdefault(cable.second, set()).add(cable.first)
    levels = {cable.first: 1 for node in nodes for cable in graph.hosts[node]}
    queue = deque(levels)
    while queue:
        switch = queue.popleft()
        for other in near.get(switch, ()):
            if other not in levels:
                levels[other] = levels[switch] + 1
                queue.append(other)
    return levels


def _tier(
    graph: FabricGraph,
    level: int,
    levels: dict[str, int],
    groups: dict[str, list[int]],
    sets: _Sets,
    nodes: set[str],
) -> NetworkTier:
    up: Counter[str] = Counter()
    down: Counter[str] = Counter()
    up_rates: set[float] = set()
    down_rates: set[float] = set()
    for cable in graph.between:
        lower, upper = sorted((cable.first, cable.second), key=lambda switch: levels.get(switch, 99))
        if levels.get(lower) == level and levels.get(upper) == level + 1:
            up[sets.find(lower)] += 1
            up_rates |= {cable.rate_bytes_per_s} if cable.rate_bytes_per_s else set()
        elif level > 1 and levels.get(upper) == level and levels.get(lower) == level - 1:
            down[sets.find(upper)] += 1
            down_rates |= {cable.rate_bytes_per_s} if cable.rate_bytes_per_s else set()
    if level == 1:
        for node in nodes:
            for cable in graph.hosts[node]:
                down[sets.find(cable.first)] += 1
                down_rates |= {cable.rate_bytes_per_s} if cable.rate_bytes_per_s else set()
    order = sorted(groups, key=lambda root: min(groups[root]))
    return NetworkTier(
        name=tier_name(level),
        groups=tuple(tuple(sorted(groups[root])) for root in order),
        link_bandwidth_bytes_per_s=min(up_rates, default=None),
        uplinks_per_group=tuple(up[root] for root in order) if up else (),
        downlinks_per_group=tuple(down[root] for root in order) if down else (),
        downlink_bandwidth_bytes_per_s=min(down_rates, default=None),
    )
