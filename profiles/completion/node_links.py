"""The scale-up domains of a node, and their kind: from the links of each pair of devices.

A domain is a group of consecutive devices in which every pair has a fast link (NVLink, xGMI, HCCS, UB, MetaXLink).
Where the whole node is no such group (hybrid cube mesh, 4 + 4, pairs of dies), the largest equal groups that are:
smaller than what the wiring could do, and safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profiles.topology import DevicePair, LinkType, NodeTopology

_FAST: frozenset[LinkType] = frozenset({"nvlink", "xgmi", "hccs", "hccs_switch", "ub", "metaxlink", "sio"})
_PCIE: frozenset[LinkType] = frozenset({"pcie_switch", "pcie_bridges", "pcie_host", "numa", "system"})


@dataclass(frozen=True, slots=True)
class NodeLinks:
    """The domain: ``num_links`` is the least number of links of a pair in it; None where the source does not count."""

    kind: Literal["switch", "mesh", "pcie", "none"]
    domain_size: int
    link: LinkType
    num_links: int | None
    irregular: tuple[str, ...] = ()


def node_links(node: NodeTopology) -> NodeLinks | None:
    """How the devices of a node are joined; None if the source does not say."""
    if node.num_devices == 1:
        return NodeLinks("none", 1, "none", None)
    pairs = {(pair.first, pair.second): pair for pair in node.pairs}
    if len(pairs) < node.num_devices * (node.num_devices - 1) // 2:
        return None
    fast = {key: pair for key, pair in pairs.items() if pair.link in _FAST}
    if not fast:
        known = all(pair.link in _PCIE for pair in pairs.values())
        # A peer-to-peer matrix says OK for any wiring: that is no PCIe.
        return NodeLinks("pcie", node.num_devices, "system", None) if known else None
    size = _largest_groups(node.num_devices, fast)
    if size < 2:
        what = f"{len(fast)} pairs have fast links, but no equal groups of devices do; PCIe is taken"
        return NodeLinks("pcie", node.num_devices, "system", None, (what,))
    inside = [pair for key, pair in fast.items() if key[0] // size == key[1] // size]
    return _links(node, size, inside, len(fast) > len(inside))


def _largest_groups(num_devices: int, fast: dict[tuple[int, int], DevicePair]) -> int:
    for size in range(num_devices, 1, -1):
        if num_devices % size == 0 and all(
            (first, second) in fast
            for start in range(0, num_devices, size)
            for first in range(start, start + size)
            for second in range(first + 1, start + size)
        ):
            return size
    return 1


def _links(node: NodeTopology, size: int, inside: list[DevicePair], more: bool) -> NodeLinks:
    irregular: list[str] = []
    if size < node.num_devices:
        what = f"only groups of {size} devices are joined all to all; each is a scale-up domain"
        irregular.append(what + (", further links between them are not counted on" if more else ""))
    kinds = {pair.link for pair in inside}
    counts = {pair.num_links for pair in inside}
    num_links = min((count for count in counts if count), default=None) if None not in counts else None
    if len(counts) > 1 and num_links:
        irregular.append(f"pairs have {num_links} to {max(count or 0 for count in counts)} links; the least is taken")
    switched = node.switched is True or "hccs_switch" in kinds
    link = "hccs_switch" if "hccs_switch" in kinds else sorted(kinds)[0] if len(kinds) > 1 else next(iter(kinds))
    return NodeLinks("switch" if switched else "mesh", size, link, num_links, tuple(irregular))
