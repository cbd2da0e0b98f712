"""Number and rate of a node's NICs for training: the topology's where it knows them, else the base's.

NICs without GPUDirect where others have it, and NICs slower than half of the fastest, are for management or storage.
"""

from __future__ import annotations

from collections.abc import Mapping

from profiles.cluster import NicTransport, Pool
from profiles.completion.notes import Notes, agreed, catalogue_pools, missing
from profiles.topology import Nic, Topology
from profiles.units import format_bytes_per_s

_SLOWEST_ETHERNET = 25e9 / 8
"""A slower Ethernet port is for management: no accelerator node trains over it."""
TRANSPORTS: Mapping[str, NicTransport] = {"efa": "efa", "slingshot": "slingshot"}
"""Of the kinds that files name (``profiles.topology.Nic``): "ib" is said of every mlx5 card, which may carry RoCE, and
"ethernet" of cards that may as well."""
WITH_VERBS = frozenset({"infiniband", "roce"})


def nics_of(topology: Topology, base: Pool | None, device: str, num_nodes: int, notes: Notes) -> tuple[int, float]:
    """(NICs of a node, one-way bytes a second of one).  Raises ProfileMissing for several nodes without any."""
    rated = _for_training(_most_rated(topology))
    rates = {nic.bandwidth_bytes_per_s for nic in rated if nic.bandwidth_bytes_per_s}
    if rates:
        if len(rates) > 1:
            notes.say(f"nic_bandwidth_bytes_per_s: NICs differ; the slowest of {len(rated)} is taken")
        rate = min(rates)
        notes.topology("nics_per_node", len(rated))
        notes.topology("nic_bandwidth_bytes_per_s", format_bytes_per_s(rate))
        return len(rated), rate
    seen = topology.node.nics if topology.node is not None and topology.node.nics else topology.nics
    count = _counted(seen, base, notes)
    rate_known = _rate(base, device, notes) if count else None
    if count is None:
        return _without(base, device, num_nodes, notes)
    if rate_known is None:
        if num_nodes == 1:
            notes.say("nics: the rate of the NICs is unknown; one node needs none")
            return 0, 0.0
        raise missing("nic_bandwidth_bytes_per_s", device)
    return count, rate_known


def _most_rated(topology: Topology) -> tuple[Nic, ...]:
    lists = [topology.nics, topology.node.nics if topology.node is not None else ()]
    return max(lists, key=lambda nics: sum(nic.bandwidth_bytes_per_s is not None for nic in nics))


def _for_training(nics: tuple[Nic, ...]) -> list[Nic]:
    fastest = max((nic.bandwidth_bytes_per_s or 0.0 for nic in nics), default=0.0)
    direct = any(nic.direct for nic in nics)
    return [
        nic
        for nic in nics
        if nic.bandwidth_bytes_per_s
        and 2 * nic.bandwidth_bytes_per_s >= fastest
        and (nic.direct or not direct)
        and not (nic.kind == "ethernet" and nic.bandwidth_bytes_per_s < _SLOWEST_ETHERNET)
    ]


def _counted(nics: tuple[Nic, ...], base: Pool | None, notes: Notes) -> int | None:
    """NICs of a source that names no rates; with a base of another number, those that share a switch with devices."""
    if not nics:
        return None
    near = [nic for nic in nics if nic.link in ("pcie_switch", "pcie_bridges")]
    listed = any(nic.link is not None for nic in nics)
    if listed and base is not None and base.nics_per_node not in (0, len(nics)) and len(near) != len(nics):
        # A matrix lists storage and management NICs too; logs and rank tables list those that are used.
        what = f"nics_per_node: {len(nics)} NICs are seen ({len(near)} near devices), which of them train is not"
        notes.say(f"{what}; the base's {base.nics_per_node} is kept")
        return base.nics_per_node
    count = len(near) or len(nics)
    notes.topology("nics_per_node", count)
    return count


def _rate(base: Pool | None, device: str, notes: Notes) -> float | None:
    if base is not None and base.nic_bandwidth_bytes_per_s:
        rate = base.nic_bandwidth_bytes_per_s
        notes.other("nic_bandwidth_bytes_per_s", format_bytes_per_s(rate), "the base")
        return rate
    pools = catalogue_pools(device)
    known = agreed({name: pool.nic_bandwidth_bytes_per_s for name, pool in pools.items()})
    if known:
        notes.other("nic_bandwidth_bytes_per_s", format_bytes_per_s(known), f"the catalogue ({', '.join(pools)} agree)")
    return known


def _without(base: Pool | None, device: str, num_nodes: int, notes: Notes) -> tuple[int, float]:
    if base is not None:
        shown = f"{base.nics_per_node} of {format_bytes_per_s(base.nic_bandwidth_bytes_per_s)}"
        notes.other("nics_per_node", shown, "the base")
        return base.nics_per_node, base.nic_bandwidth_bytes_per_s
    if num_nodes == 1:
        notes.say("nics_per_node: none is seen; one node needs none")
        return 0, 0.0
    pools = catalogue_pools(device)
    count = agreed({name: pool.nics_per_node for name, pool in pools.items()})
    rate = agreed({name: pool.nic_bandwidth_bytes_per_s for name, pool in pools.items()})
    if count is None or rate is None:
        raise missing("nics_per_node", device)
    notes.other(
        "nics_per_node", f"{count:g} of {format_bytes_per_s(rate)}", f"the catalogue ({', '.join(pools)} agree)"
    )
    return int(count), rate


def transport_of(topology: Topology, base: Pool | None, notes: Notes) -> NicTransport | None:
    """How the NICs move data: as the files name it, else as the base; None where neither does or they differ."""
    node = topology.node.nics if topology.node is not None else ()
    kinds = {nic.kind for nic in _for_training(_most_rated(topology)) or (*node, *topology.nics) if nic.kind}
    known = TRANSPORTS.get(next(iter(kinds))) if len(kinds) == 1 else None
    if known is not None:
        notes.topology("nic_transport", known)
        return known
    contradicted = base is not None and "ib" in kinds and base.nic_transport not in WITH_VERBS
    if base is not None and base.nic_transport is not None and not contradicted:
        notes.other("nic_transport", base.nic_transport, "the base")
        return base.nic_transport
    return None
