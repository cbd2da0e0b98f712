"""The scale-up network: kind and size from the topology, rates from link counts or the base."""

from __future__ import annotations

from profiles.catalogue.architectures import architectures
from profiles.cluster import Pool, ScaleUp
from profiles.completion.node_links import NodeLinks, node_links
from profiles.completion.notes import Notes, catalogue_pools, missing
from profiles.device import Device
from profiles.link_rates import link_rate_bytes_per_s
from profiles.topology import Topology
from profiles.units import format_bytes_per_s

_NAMES = {
    "nvlink": "NVLink",
    "xgmi": "xGMI",
    "hccs": "HCCS",
    "hccs_switch": "HCCS",
    "ub": "UB",
    "metaxlink": "MetaXLink",
}
_SAME = 0.02
"""A rate within 2 % of the base's confirms it; the base's own digits stay."""


def scale_up_of(
    topology: Topology, base: Pool | None, device: Device, devices_per_node: int, host_link: float, notes: Notes
) -> ScaleUp:
    """The scale-up network.  Raises ProfileMissing for a rate that neither topology, base nor catalogue gives."""
    links = node_links(topology.node) if topology.node is not None else None
    spans = base is not None and base.scale_up.domain_size > base.devices_per_node
    if links is None or (links.kind == "none" and (spans or topology.scale_up_domain_size)):
        return _from_base(topology, base, device, devices_per_node, notes)
    for what in links.irregular:
        notes.say(what)
    known, where = _known(links, base, device)
    domain = _domain(topology, links, base, devices_per_node, notes)
    notes.topology("scale_up.kind", links.kind)
    notes.topology("scale_up.domain_size", domain)
    bandwidth, pair = _rates(links, known, device, host_link, notes, where)
    return ScaleUp(
        kind=links.kind,
        name=known.name if known and known.kind == links.kind else _NAMES.get(links.link, ""),
        domain_size=domain,
        bandwidth_bytes_per_s=bandwidth,
        pair_bandwidth_bytes_per_s=pair,
        latency_s=_latency(links, known, notes, where),
        in_network_reduction=known.in_network_reduction if known and known.kind == links.kind else False,
    )


def _known(links: NodeLinks, base: Pool | None, device: Device) -> tuple[ScaleUp | None, str]:
    """The base's scale-up, else what all catalogue clusters of this device with the same kind and size agree on."""
    if base is not None:
        return base.scale_up, "the base"
    found = {name: pool.scale_up for name, pool in catalogue_pools(device.name).items()}
    same = {name: each for name, each in found.items() if each.kind == links.kind}
    same = {name: each for name, each in same.items() if each.domain_size == links.domain_size}
    rates = {(each.bandwidth_bytes_per_s, each.pair_bandwidth_bytes_per_s) for each in same.values()}
    where = f"the catalogue ({', '.join(same)} agree)"
    return (next(iter(same.values())), where) if len(rates) == 1 else (None, "")


def _from_base(topology: Topology, base: Pool | None, device: Device, devices_per_node: int, notes: Notes) -> ScaleUp:
    """The base's network where the topology shows no links; its size follows the blocks of nodes that it shows."""
    if base is None:
        pools = catalogue_pools(device.name)
        kinds = {pool.scale_up for pool in pools.values() if pool.devices_per_node == devices_per_node}
        if len(kinds) != 1:
            raise missing("scale_up", device.name)
        scale_up, where = kinds.pop(), f"the catalogue ({', '.join(pools)} agree)"
    else:
        scale_up, where = base.scale_up, "the base"
    notes.other("scale_up", f"{scale_up.kind} of {scale_up.domain_size}", where)
    if scale_up.kind == "torus":
        return _torus(topology, scale_up, devices_per_node, notes)
    of_node = base.devices_per_node if base is not None else devices_per_node
    whole = devices_per_node if scale_up.domain_size == of_node else scale_up.domain_size
    limit = scale_up.domain_size if scale_up.domain_size > of_node else None
    across = _nodes_in_domain(topology, devices_per_node, limit, notes)
    if across and across != scale_up.domain_size:
        notes.topology("scale_up.domain_size", across)
    domain = across or whole
    update: dict[str, object] = {"domain_size": domain}
    if scale_up.kind == "mesh" and scale_up.pair_bandwidth_bytes_per_s and domain != scale_up.domain_size:
        update["bandwidth_bytes_per_s"] = scale_up.pair_bandwidth_bytes_per_s * max(1, domain - 1)
    return scale_up.model_copy(update=update)


def _torus(topology: Topology, scale_up: ScaleUp, devices_per_node: int, notes: Notes) -> ScaleUp:
    if topology.torus_shape is None or devices_per_node != 1:
        if topology.torus_shape is not None:
            notes.say("scale_up.torus_shape: the topology's torus is one of nodes; the base's shape of devices is kept")
        return scale_up
    x, y, z = (*topology.torus_shape, 1, 1)[:3]
    notes.topology("scale_up.torus_shape", "x".join(map(str, topology.torus_shape)))
    return scale_up.model_copy(update={"torus_shape": topology.torus_shape, "domain_size": x * y * z})


def _domain(topology: Topology, links: NodeLinks, base: Pool | None, devices_per_node: int, notes: Notes) -> int:
    """Devices in a domain: of one node, or of the nodes that share switches."""
    if links.kind != "switch" or links.domain_size < devices_per_node:
        return links.domain_size
    spans = base is not None and base.scale_up.domain_size > base.devices_per_node
    limit = base.scale_up.domain_size if base is not None and spans else None
    across = _nodes_in_domain(topology, devices_per_node, limit, notes)
    if across:
        return across
    if base is not None and spans and base.scale_up.domain_size % devices_per_node == 0:
        notes.say(f"scale_up.domain_size: one node cannot show it; the base's {base.scale_up.domain_size} is kept")
        return base.scale_up.domain_size
    return links.domain_size


def _nodes_in_domain(topology: Topology, devices_per_node: int, limit: int | None, notes: Notes) -> int | None:
    """Devices in a domain of several nodes, the smallest where they differ; None if the topology shows none.

    ``limit``: the domain of the base where it spans nodes (NVL72); None otherwise.  Only then may groups of nodes be
    domains, and none is larger than the base's: a label of a scheduler does not lay cables.
    """
    said = topology.scale_up_domain_size
    if said and said % devices_per_node == 0 and (limit is None or said <= limit):
        return said
    if limit is None:
        return None
    sizes: dict[int, str] = {}
    # Larger blocks of a scheduler are built from base blocks and say nothing about the wiring.
    blocks = [tier for tier in topology.tiers if tier.kind == "block"][:1]
    for tier in (tier for tier in topology.tiers if tier.kind == "scale_up" or tier in blocks):
        smallest = min(map(len, tier.groups))
        uneven = smallest < max(map(len, tier.groups))
        what = f"{tier.name} groups differ; the smallest, {smallest} nodes, is taken" if uneven else ""
        if smallest * devices_per_node <= limit:
            sizes.setdefault(smallest * devices_per_node, what)
        else:
            notes.say(
                f"scale_up.domain_size: {tier.name} groups hold {smallest} nodes, more than the base's {limit} devices"
            )
    if not sizes:
        return None
    largest = max(sizes)
    if sizes[largest]:
        notes.say(f"scale_up.domain_size: {sizes[largest]}")
    return largest


def _rates(
    links: NodeLinks, known: ScaleUp | None, device: Device, host_link: float, notes: Notes, where: str
) -> tuple[float, float | None]:
    """(bandwidth of a device, bandwidth of a pair), one-way."""
    if links.kind in ("pcie", "none"):
        if known is not None and known.kind == links.kind:
            notes.other("scale_up.bandwidth_bytes_per_s", format_bytes_per_s(known.bandwidth_bytes_per_s), where)
            return known.bandwidth_bytes_per_s, None
        notes.other("scale_up.bandwidth_bytes_per_s", format_bytes_per_s(host_link), "the host link: PCIe only")
        return host_link, None
    rate = link_rate_bytes_per_s(links.link, device.architecture)
    if rate is None or links.num_links is None:
        return _known_rates(links, known, device, notes, where)
    of_pair = links.num_links * rate[0]
    total = of_pair if links.kind == "switch" else of_pair * (links.domain_size - 1)
    if known is not None and known.kind == links.kind and abs(total / known.bandwidth_bytes_per_s - 1) < _SAME:
        total = known.bandwidth_bytes_per_s
        of_pair = known.pair_bandwidth_bytes_per_s or of_pair
    why = f"{links.num_links} links of {format_bytes_per_s(rate[0])}" + (" a pair" if links.kind == "mesh" else "")
    notes.topology("scale_up.bandwidth_bytes_per_s", format_bytes_per_s(total), why, rate[1])
    return total, of_pair if links.kind == "mesh" else None


def _known_rates(
    links: NodeLinks, known: ScaleUp | None, device: Device, notes: Notes, where: str
) -> tuple[float, float | None]:
    """Rates of the base or the catalogue for links that the topology does not count."""
    if known is None or known.kind != links.kind:
        raise missing("scale_up.bandwidth_bytes_per_s", device.name)
    pair = known.pair_bandwidth_bytes_per_s
    total = known.bandwidth_bytes_per_s
    if links.kind == "mesh" and pair and links.domain_size != known.domain_size:
        total = pair * (links.domain_size - 1)
    notes.other("scale_up.bandwidth_bytes_per_s", format_bytes_per_s(total), f"{where}: links are not counted")
    return total, pair if links.kind == "mesh" else None


def _latency(links: NodeLinks, known: ScaleUp | None, notes: Notes, where: str) -> float:
    if known is not None and known.kind == links.kind:
        notes.other("scale_up.latency_s", f"{known.latency_s:g} s", where)
        return known.latency_s
    latencies = architectures().scale_up_latency_s.values
    latency = latencies.get(links.kind, latencies["pcie"])
    notes.other("scale_up.latency_s", f"{latency:g} s", "NCCL's tuning table (a prior, not measured)")
    return latency
