"""A cluster from a topology: built from it, or completed from a catalogue cluster that it overrules.

What the topology shows wins; what it does not show comes from the base, or from the catalogue where all its clusters of
the same device agree, or from a constant with a source.  Nothing else is made up: ``ProfileMissing`` names the field.
"""

from __future__ import annotations

from collections import Counter

from profiles.catalogue import load_device
from profiles.cluster import Cluster, Host, Pool
from profiles.completion.fabric_levels import fabric_of_tiers
from profiles.completion.network_cards import nics_of, transport_of
from profiles.completion.notes import Notes, agreed, catalogue_pools, missing
from profiles.completion.scale_up import scale_up_of
from profiles.consistency import check_cluster
from profiles.device import Device
from profiles.device_names import catalogue_device
from profiles.errors import Conflict, DocumentInvalid, ProfileMissing
from profiles.topology import Topology
from profiles.units import format_bytes, format_bytes_per_s
from profiles.validation import require


def complete_cluster(
    topology: Topology, *, base: Cluster | None, device: str | None, name: str
) -> tuple[Cluster, list[str]]:
    """The cluster, and one sentence for each value that says where it comes from.

    ``base``: a cluster of one pool to complete from; ``device``: a catalogue name, which overrules both.
    Raises ProfileMissing (with the field and how to give it), Conflict (base and topology are of different devices),
    DocumentInvalid (a base of several pools; an inconsistent result).
    """
    notes = Notes()
    pool = _only_pool(base)
    chosen = _device(topology, pool, device, notes)
    devices_per_node = _devices_per_node(topology, pool, chosen.name, notes)
    num_nodes = _num_nodes(topology, pool, notes)
    host = _host(topology, pool, chosen.name, notes)
    scale_up = scale_up_of(topology, pool, chosen, devices_per_node, host.link_bandwidth_bytes_per_s, notes)
    num_nics, nic_rate = nics_of(topology, pool, chosen.name, num_nodes, notes)
    fabric = fabric_of_tiers(
        topology,
        base.fabric if base is not None else None,
        chosen.name,
        num_nodes=num_nodes,
        nodes_of_domain=max(1, scale_up.domain_size // devices_per_node) if scale_up.kind != "none" else 1,
        notes=notes,
    )
    built = Pool(
        name=pool.name if pool is not None else "default",
        device=chosen,
        num_nodes=num_nodes,
        devices_per_node=devices_per_node,
        scale_up=scale_up,
        nics_per_node=num_nics,
        nic_bandwidth_bytes_per_s=nic_rate,
        nic_latency_s=_nic_latency(pool, chosen.name, notes),
        rail_optimized=_rails(topology, pool, notes),
        nic_transport=transport_of(topology, pool, notes),
        host=host,
    )
    for what in topology.irregular:
        notes.say(f"irregular: {what}")
    provenance = {**(base.provenance if base is not None else {}), **notes.provenance}
    price = base.price_per_device_hour if base is not None else None
    cluster = Cluster(name=name, pools=(built,), fabric=fabric, price_per_device_hour=price, provenance=provenance)
    require(check_cluster(cluster), name)
    return cluster, notes.sentences


def cluster_yaml(cluster: Cluster) -> str:
    """The cluster as a YAML file that ``--cluster FILE`` reads; catalogue devices by name."""
    from io import StringIO

    from ruamel.yaml import YAML

    data = cluster.model_dump(mode="json", exclude_none=True)
    for pool, dumped in zip(cluster.pools, data["pools"], strict=True):
        if _is_builtin(pool.device):
            dumped["device"] = pool.device.name
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def _is_builtin(device: Device) -> bool:
    from profiles.catalogue import builtin_devices

    return device.name in builtin_devices() and load_device(device.name) == device


def _only_pool(base: Cluster | None) -> Pool | None:
    if base is None:
        return None
    if len(base.pools) > 1:
        raise DocumentInvalid(
            f"the base {base.name} has {len(base.pools)} pools; a topology completes one", where="--base",
            hint="name a cluster of one pool, and put the pools together by hand",
        )  # fmt: skip
    return base.pools[0]


def _device(topology: Topology, base: Pool | None, given: str | None, notes: Notes) -> Device:
    reported = topology.node.device_reported if topology.node is not None else ""
    recognised = catalogue_device(reported) if reported else None
    if given:
        notes.other("device", given, "--device")
        return load_device(given)
    if base is not None:
        if recognised and recognised != base.device.name:
            raise Conflict(
                f"the topology is of {recognised}, the base of {base.device.name}",
                where="--base",
                hint=f"choose a base of {recognised}, or say --device {recognised}",
            )
        notes.other("device", base.device.name, "the base")
        return base.device
    if recognised:
        notes.topology("device", recognised, f"reported as '{reported[:60]}'")
        return load_device(recognised)
    raise ProfileMissing(
        "no file names the device",
        where="cluster.yaml#/pools/0/device",
        hint="say --device NAME (meshwright devices list) or --base NAME (meshwright clusters list)",
    )


def _devices_per_node(topology: Topology, base: Pool | None, device: str, notes: Notes) -> int:
    if topology.devices_of_node:
        counts = Counter(topology.devices_of_node)
        if len(counts) > 1:
            smallest = min(counts)
            notes.say(f"devices_per_node: nodes hold {smallest} to {max(counts)} devices; the smallest is safe")
            return smallest
        notes.topology("devices_per_node", next(iter(counts)))
        return next(iter(counts))
    if topology.node is not None:
        notes.topology("devices_per_node", topology.node.num_devices)
        return topology.node.num_devices
    if base is not None:
        notes.other("devices_per_node", base.devices_per_node, "the base")
        return base.devices_per_node
    pools = catalogue_pools(device)
    known = agreed({name: pool.devices_per_node for name, pool in pools.items()})
    if known is None:
        raise missing("devices_per_node", device)
    notes.other("devices_per_node", int(known), f"the catalogue ({', '.join(pools)} agree)")
    return int(known)


def _num_nodes(topology: Topology, base: Pool | None, notes: Notes) -> int:
    if topology.num_nodes is not None:
        notes.topology("num_nodes", topology.num_nodes)
        return topology.num_nodes
    if base is not None:
        notes.other("num_nodes", base.num_nodes, "the base; scale it with --devices")
        return base.num_nodes
    notes.topology("num_nodes", 1, "a node's own tool shows that node; scale it with --devices")
    return 1


def _host(topology: Topology, base: Pool | None, device: str, notes: Notes) -> Host:
    pools = catalogue_pools(device)
    seen = topology.node.host_link_bandwidth_bytes_per_s if topology.node is not None else None
    known = base.host.link_bandwidth_bytes_per_s if base is not None else None
    where = "the base"
    if known is None and seen is None:
        known = agreed({name: pool.host.link_bandwidth_bytes_per_s for name, pool in pools.items()})
        where = f"the catalogue ({', '.join(pools)} agree)"
    if seen is not None and (known is None or abs(seen / known - 1) > 0.02):
        link = seen
        notes.topology("host.link_bandwidth_bytes_per_s", format_bytes_per_s(link))
    elif known is not None:
        link = known
        notes.other("host.link_bandwidth_bytes_per_s", format_bytes_per_s(link), where)
    else:
        raise missing("host.link_bandwidth_bytes_per_s", device)
    if base is not None:
        memory = base.host.memory_bytes
        notes.other("host.memory_bytes", format_bytes(memory), "the base")
    else:
        agreed_memory = agreed({name: pool.host.memory_bytes for name, pool in pools.items()})
        if agreed_memory is None:
            raise missing("host.memory_bytes", device)
        memory = int(agreed_memory)
        notes.other("host.memory_bytes", format_bytes(memory), f"the catalogue ({', '.join(pools)} agree)")
    return Host(memory_bytes=memory, link_bandwidth_bytes_per_s=link)


def _nic_latency(base: Pool | None, device: str, notes: Notes) -> float:
    if base is not None:
        notes.other("nic_latency_s", f"{base.nic_latency_s:g} s", "the base")
        return base.nic_latency_s
    pools = catalogue_pools(device)
    known = agreed({name: pool.nic_latency_s for name, pool in pools.items()})
    latency = known if known is not None else float(Pool.model_fields["nic_latency_s"].default)
    where = f"the catalogue ({', '.join(pools)} agree)" if known is not None else "the document's default"
    notes.other("nic_latency_s", f"{latency:g} s", where)
    return latency


def _rails(topology: Topology, base: Pool | None, notes: Notes) -> bool:
    if topology.rail_optimized is not None:
        notes.topology("rail_optimized", topology.rail_optimized)
        return topology.rail_optimized
    if base is not None:
        notes.other("rail_optimized", base.rail_optimized, "the base")
        return base.rail_optimized
    notes.other("rail_optimized", False, "caution: no file shows rails")
    return False
