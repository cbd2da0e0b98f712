"""The fabric graph of a pool, from a cluster document, or with the tiers that a topology lists node by node.

A node has ``gcd(NICs, devices)`` NIC vertices, each of equal devices; on a rail-optimised pool each has a leaf of its
own in every group of the innermost tier.  An up-link carries what comes from below over the tier's oversubscription.

How many switches stand side by side is not in a cluster document.  Switches of one size are assumed: a leaf has
``d`` cables down and ``u`` up, a spine as many ports in all, one of the outermost tier all of them downwards.  For
dgx-h100 with 128 nodes that gives 32 leaves and 16 spines.

Latency of a path equals that of its network level (``profiles.levels``): half on each side.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from profiles.cluster import Cluster, FabricLevel, Pool
from profiles.errors import DocumentInvalid
from profiles.fabric.fabric import Fabric, Floats, Ints, Tier
from profiles.topology import NetworkTier
from profiles.torus import RING_CLOSES_AT, torus_slice


def fabric_of(cluster: Cluster, tiers: Sequence[NetworkTier] = ()) -> Fabric:
    """The graph of a cluster of one pool; ``tiers`` of a topology replace groups and up-links of the document's.

    Raises DocumentInvalid for several pools, and for nodes that no NIC joins.
    """
    if len(cluster.pools) != 1:
        raise DocumentInvalid(
            f"cluster {cluster.name} has {len(cluster.pools)} pools; a fabric graph is drawn of one",
            where=f"{cluster.name}#/pools",
            hint="keep one entry of /pools",
        )
    return _Builder(cluster.pools[0]).fabric(cluster.fabric, tiers)


class _Builder:
    """Vertices and edges as they are added."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.kinds: list[str] = []
        self.kind: list[Ints] = []
        self.switches: list[Floats] = []
        self.num_vertices = self.num_edges = 0
        self.columns: list[tuple[Ints, Ints, Floats, Floats, Floats]] = []
        scale_up = pool.scale_up
        self.domain = min(scale_up.domain_size, pool.num_devices) if scale_up.kind != "none" else 1
        self.node = min(pool.devices_per_node, pool.num_devices)
        self.is_host_tree = scale_up.kind == "pcie" and self.domain >= self.node
        self.nics = gcd(pool.nics_per_node, pool.devices_per_node)
        whole = scale_up.torus_shape or (scale_up.domain_size,)
        is_torus = scale_up.kind == "torus" and self.domain > 1
        self.shape = (whole if self.domain == scale_up.domain_size else torus_slice(whole, self.domain)) * is_torus

    def vertices(self, kind: str, count: int, switches: Floats | float = 1.0) -> int:
        """The first of ``count`` new vertices."""
        self.kinds.append(kind)
        self.kind.append(np.full(count, len(self.kinds) - 1, dtype=np.int64))
        self.switches.append(np.broadcast_to(np.asarray(switches, dtype=np.float64), count))
        self.num_vertices += count
        return self.num_vertices - count

    def edges(
        self, tail: Ints, head: Ints, capacity: Floats | float, latency_s: float, cables: Floats | float = 1.0
    ) -> int:
        """The first of new edges; ``capacity`` of all cables of an edge together."""
        count = len(tail)
        wide = [np.broadcast_to(np.asarray(each, dtype=np.float64), count) for each in (capacity, latency_s, cables)]
        self.columns.append((tail, np.asarray(head), wide[0], wide[1], wide[2]))
        self.num_edges += count
        return self.num_edges - count

    def fabric(self, levels: Sequence[FabricLevel], listed: Sequence[NetworkTier]) -> Fabric:
        """The whole."""
        pool, devices = self.pool, np.arange(self.pool.num_devices, dtype=np.int64)
        self.vertices("device", pool.num_devices)
        scale_up = link = host = nic = slot = cable = None
        if self.domain > 1:
            if pool.scale_up.kind in ("switch", "pcie"):
                first = self.vertices("scale_up", -(-pool.num_devices // self.domain))
                rate, half_s = pool.scale_up.bandwidth_bytes_per_s, pool.scale_up.latency_s / 2
                scale_up = self.edges(devices, first + devices // self.domain, rate, half_s)
            else:
                link = self._mesh() if pool.scale_up.kind == "mesh" else self._torus()
        if self.domain < self.node:
            first = self.vertices("host", pool.num_nodes)
            rate = pool.host.link_bandwidth_bytes_per_s
            host = self.edges(devices, first + devices // self.node, rate, pool.nic_latency_s / 2)
        tiers: tuple[Tier, ...] = ()
        if pool.num_devices > max(self.domain, self.node):
            nic, slot = self._network_cards(host)
            cable, tiers = self._tiers(nic, levels, listed)
        tail, head, capacity, latency_s, cables = (
            np.concatenate([each[column] for each in self.columns] or [np.zeros(0)]) for column in range(5)
        )
        return Fabric(
            pool=pool,
            kinds=tuple(self.kinds),
            kind=np.concatenate(self.kind),
            switches=np.concatenate(self.switches),
            tail=tail.astype(np.int64),
            head=head.astype(np.int64),
            capacity_bytes_per_s=capacity,
            latency_s=latency_s,
            cables=cables,
            domain=self.domain,
            torus_shape=self.shape or None,
            nics=self.nics if tiers else 0,
            tiers=tiers,
            first_scale_up=scale_up,
            first_link=link,
            first_host=host if not self.is_host_tree else scale_up,
            first_nic=nic,
            first_slot=slot,
            first_cable=cable,
        )

    def _mesh(self) -> int:
        """A link for each pair of a domain, pair by pair in the order of ``numpy.triu_indices``."""
        pool = self.pool
        pair = pool.scale_up.pair_bandwidth_bytes_per_s
        pair = pair or pool.scale_up.bandwidth_bytes_per_s / max(pool.scale_up.domain_size - 1, 1)
        left, right = np.triu_indices(self.domain, 1)
        first = np.arange(0, pool.num_devices, self.domain)[:, None]
        tail, head = (first + left).ravel(), (first + right).ravel()
        return self.edges(tail, np.minimum(head, pool.num_devices - 1), pair, pool.scale_up.latency_s)

    def _torus(self) -> int:
        """For each axis the link of every device to the next one along it; capacity 0 where a line ends."""
        pool, shape, devices = self.pool, self.shape, np.arange(self.pool.num_devices, dtype=np.int64)
        pair = pool.scale_up.pair_bandwidth_bytes_per_s or pool.scale_up.bandwidth_bytes_per_s / (2 * len(shape))
        first, step = self.num_edges, 1
        for length in reversed(shape):
            place = devices // step % length
            ends = (place == length - 1) & (length < RING_CLOSES_AT)
            head = np.where(place == length - 1, devices - (length - 1) * step, devices + step)
            self.edges(devices, head, np.where(ends, 0.0, pair), pool.scale_up.latency_s)
            step *= length
        return first

    def _network_cards(self, host: int | None) -> tuple[int, int]:
        pool = self.pool
        if pool.nics_per_node * pool.nic_bandwidth_bytes_per_s <= 0:
            raise DocumentInvalid(
                f"pool {pool.name} has {pool.num_devices} devices beyond one scale-up domain, and no NICs to join them",
                where="/nics_per_node",
                hint="give nics_per_node and nic_bandwidth_bytes_per_s",
            )
        first = self.vertices("nic", pool.num_nodes * self.nics, pool.nics_per_node / self.nics)
        cards = np.arange(pool.num_nodes * self.nics, dtype=np.int64)
        rate = pool.nics_per_node * pool.nic_bandwidth_bytes_per_s / self.nics
        if host is not None or self.is_host_tree:
            # The NIC's latency is in the passage from device to host already; a scale-up tree has a part of it.
            before_s = pool.nic_latency_s if host is not None else pool.scale_up.latency_s
            start = first - (pool.num_nodes if host is not None else -(-pool.num_devices // self.domain))
            node = cards // self.nics if host is not None else cards // self.nics * self.node // self.domain
            return first, self.edges(start + node, first + cards, rate, max(pool.nic_latency_s - before_s, 0.0) / 2)
        devices = np.arange(pool.num_devices, dtype=np.int64)
        nearest = devices // self.node * self.nics + devices % self.node * self.nics // self.node
        slot = pool.host.link_bandwidth_bytes_per_s
        return first, self.edges(devices, first + nearest, slot, pool.nic_latency_s / 2)

    def _tiers(
        self, nic: int, levels: Sequence[FabricLevel], listed: Sequence[NetworkTier]
    ) -> tuple[int, tuple[Tier, ...]]:
        pool, nodes = self.pool, np.arange(self.pool.num_nodes, dtype=np.int64)
        cards = np.arange(pool.num_nodes * self.nics, dtype=np.int64)
        reaches = (self.domain > 1 and pool.scale_up.kind in ("switch", "mesh")) or "host" in self.kinds
        rails = self.nics if pool.rail_optimized and (reaches or self.is_host_tree) else 1
        planned = _groups(pool, levels, listed)
        found: list[Tier] = []
        # Of each switch of the tier below: its capacity, and its cables.
        carried = np.full(len(cards), pool.nics_per_node * pool.nic_bandwidth_bytes_per_s / self.nics)
        wires = np.full(len(cards), pool.nics_per_node / self.nics)
        below, ports, first_cable = nic + cards, 0.0, -1
        for index, (name, group, oversubscription, latency_s, uplinks) in enumerate(planned):
            width = rails if index == 0 else 1
            if index == 0:
                over = group[cards // self.nics] * width + cards % self.nics * (width > 1)
            else:
                last = found[-1]
                group_below = np.zeros(last.num_groups, dtype=np.int64)
                group_below[last.group_of_node] = group[nodes]
                over = np.repeat(group_below, last.rails)
            count = (int(group.max()) + 1) * width
            down, wires_down = (np.bincount(over, weights=each, minlength=count) for each in (carried, wires))
            is_last = index == len(planned) - 1
            up = down / oversubscription if uplinks is None else np.repeat(uplinks / width, width)
            wires_up = np.maximum(np.ceil(up / pool.nic_bandwidth_bytes_per_s - 1e-9), 1.0)
            if index == 0:
                ports = float((wires_down + (0 if is_last else wires_up)).max())
                switches = np.ones(count)
            else:
                switches = np.ceil((wires_down + (0 if is_last else wires_up)) / ports - 1e-9)
            first = self.vertices(name, count, switches)
            edge = self.edges(below, first + over, carried, latency_s / 2, wires)
            if index == 0:
                first_cable = edge
            else:
                found[-1] = Tier(*_fields(found[-1]), first_up=edge)
            found.append(Tier(name, group, width, first))
            carried, wires, below = up, wires_up, first + np.arange(count, dtype=np.int64)
        return first_cable, tuple(found)


def _fields(tier: Tier) -> tuple[str, Ints, int, int]:
    return tier.name, tier.group_of_node, tier.rails, tier.first_switch


_Planned = tuple[str, Ints, float, float, "Floats | None"]


def _groups(pool: Pool, levels: Sequence[FabricLevel], listed: Sequence[NetworkTier]) -> list[_Planned]:
    """Name, group of each node, oversubscription, latency and up-link capacity, innermost first."""
    nodes, found = np.arange(pool.num_nodes, dtype=np.int64), list[_Planned]()
    switches = [tier for tier in listed if tier.kind == "switch"]
    for index, tier in enumerate(switches):
        level = levels[min(index, len(levels) - 1)] if levels else FabricLevel(name=tier.name, num_nodes=1)
        group = _listed_groups(tier, pool.num_nodes)
        uplinks = None
        if tier.uplinks_per_group:
            cables = np.ones(int(group.max()) + 1)
            cables[: len(tier.groups)] = np.maximum(np.array(tier.uplinks_per_group, dtype=np.float64), 0.0)
            uplinks = cables * (tier.link_bandwidth_bytes_per_s or pool.nic_bandwidth_bytes_per_s)
        found.append((tier.name, group, level.oversubscription, level.latency_s, uplinks))
    for level in () if switches else levels:
        found.append((level.name, nodes // level.num_nodes, level.oversubscription, level.latency_s, None))
    kept = list[_Planned]()
    for each in found:
        if kept and not _contains(each[1], kept[-1][1]):
            raise DocumentInvalid(
                f"a group of tier {kept[-1][0]} lies in several groups of {each[0]}",
                where=f"/tiers/{each[0]}",
                hint="list tiers from the innermost; every group must lie inside one group of the tier above",
            )
        kept.append(each)
        if each[1].max() == 0:
            return kept
    return [*kept, ("network", np.zeros_like(nodes), 1.0, 0.0, None)]


def _listed_groups(tier: NetworkTier, num_nodes: int) -> Ints:
    """Group of each node; nodes that the tier does not list are in one of their own."""
    group = np.full(num_nodes, -1, dtype=np.int64)
    for index, members in enumerate(tier.groups):
        inside = [node for node in members if node < num_nodes]
        group[inside] = index
    if (group < 0).any():
        group[group < 0] = len(tier.groups)
    return np.unique(group, return_inverse=True)[1].astype(np.int64) if not tier.uplinks_per_group else group


def _contains(outer: Ints, inner: Ints) -> bool:
    pairs = np.unique(np.stack([inner, outer]), axis=1)
    return bool(pairs.shape[1] == len(np.unique(inner)))
