"""One topology from several tools about one cluster: each fills what the others leave open.

``topo -m`` of a node gives links and NICs, ``ibstat`` their rates, ``ibnetdiscover`` or Slurm the network above.
Nodes are numbered by each source on its own, so groups of different sources are never intersected: their sizes are
what counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profiles.errors import Conflict, DocumentInvalid
from profiles.topology import NetworkTier, Nic, NodeTopology, Topology


def merge_topologies(topologies: Sequence[Topology]) -> Topology:
    """One topology.  Raises Conflict if two sources show nodes of different size, DocumentInvalid for none at all."""
    if not topologies:
        raise DocumentInvalid("there is no topology to merge", where="topology", hint="give at least one file")
    if len(topologies) == 1:
        return topologies[0]
    irregular = list(dict.fromkeys(what for each in topologies for what in each.irregular))
    sizes = sorted({each.num_nodes for each in topologies if each.num_nodes is not None})
    if len(sizes) > 1:
        irregular.append(f"the sources show {sizes[0]} to {sizes[-1]} nodes; the largest number is taken")
    return Topology(
        num_nodes=sizes[-1] if sizes else None,
        node=_merge_nodes([each.node for each in topologies if each.node is not None]),
        nics=max((each.nics for each in topologies), key=_knowledge),
        rail_optimized=next((each.rail_optimized for each in topologies if each.rail_optimized is not None), None),
        devices_of_node=max((each.devices_of_node for each in topologies), key=len),
        tiers=_tiers(topologies),
        torus_shape=next((each.torus_shape for each in topologies if each.torus_shape), None),
        scale_up_domain_size=next(
            (each.scale_up_domain_size for each in topologies if each.scale_up_domain_size), None
        ),
        rank_order=max((each.rank_order for each in topologies), key=len),
        irregular=tuple(irregular),
    )


def _knowledge(nics: tuple[Nic, ...]) -> tuple[int, int]:
    """More rates win, then more NICs."""
    return sum(nic.bandwidth_bytes_per_s is not None for nic in nics), len(nics)


def _tiers(topologies: Sequence[Topology]) -> tuple[NetworkTier, ...]:
    """Scale-up domains and blocks of one source, switches of the one that knows most of its cables."""
    inner = next((found for each in topologies if (found := _of_kind(each, ("scale_up", "block")))), ())
    switches = [found for each in topologies if (found := _of_kind(each, ("switch",)))]
    best = max(switches, key=lambda tiers: (any(tier.uplinks_per_group for tier in tiers), len(tiers)), default=())
    names = {tier.name for tier in inner}
    return (*inner, *(tier for tier in best if tier.name not in names))


def _of_kind(topology: Topology, kinds: tuple[str, ...]) -> tuple[NetworkTier, ...]:
    return tuple(tier for tier in topology.tiers if tier.kind in kinds)


def _merge_nodes(nodes: list[NodeTopology]) -> NodeTopology | None:
    if not nodes:
        return None
    sizes = {node.num_devices for node in nodes}
    if len(sizes) > 1:
        raise Conflict(
            f"one file shows nodes of {min(sizes)} devices, another of {max(sizes)}",
            where="topology",
            hint="give files of one kind of node, of a whole node",
        )
    # Pairs of a capability matrix (p2p) say less than those of a link matrix.
    first = max(nodes, key=lambda node: sum(pair.link not in ("unknown", "system") for pair in node.pairs))
    update: dict[str, Any] = {"nics": _merge_nics([node.nics for node in nodes])}
    for name in (
        "device_reported", "pairs", "numa_node_of_device", "num_numa_nodes", "switched",
        "host_link_bandwidth_bytes_per_s", "cpu",
    ):  # fmt: skip
        if getattr(first, name) in (None, "", ()):
            update[name] = next((value for node in nodes if (value := getattr(node, name)) not in (None, "", ())), None)
            if update[name] is None:
                del update[name]
    return first.model_copy(update=update)


def _merge_nics(lists: list[tuple[Nic, ...]]) -> tuple[Nic, ...]:
    """The list that knows most; the other of equal length fills rates, kinds and neighbours."""
    best = max(lists, key=_knowledge)
    for other in lists:
        if other is best or len(other) != len(best):
            continue
        best = tuple(_fill(nic, spare) for nic, spare in zip(best, other, strict=True))
    return best


def _fill(nic: Nic, spare: Nic) -> Nic:
    update = {
        name: getattr(spare, name)
        for name in ("bandwidth_bytes_per_s", "kind", "numa_node", "nearest_devices", "link", "direct")
        if getattr(nic, name) in (None, "", ())
    }
    return nic.model_copy(update=update)
