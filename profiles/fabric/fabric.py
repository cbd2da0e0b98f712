"""The fabric of one pool as a graph: devices, scale-up switches, hosts, NICs, rail leaves and the tiers above.

Vertices are numbered by kind (``devices`` first), edges are full-duplex links: ``capacity_bytes_per_s`` is one-way, so
an edge ``e`` has the directed links ``2 e`` (tail to head, up) and ``2 e + 1`` (down).  Equal switches that stand side
by side (the spines of one plane) are one vertex that counts ``switches``, and their cables one edge that counts
``cables``: traffic is spread over them evenly (ECMP, adaptive routing), so no cut and no share of a flow changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profiles.cluster import Pool

if TYPE_CHECKING:
    import networkx as nx

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier of switches: which group each node is in, and where the switches and their up-links are.

    ``rails``: switches of a group that are not joined in this tier, one for each NIC of a node; 1 above the leaves.
    ``first_switch``: vertex of group 0; group k, rail j is ``first_switch + k rails + j``.
    ``first_up``: edge of the up-link of that vertex, in the same order; None for the outermost tier.
    """

    name: str
    group_of_node: Ints
    rails: int
    first_switch: int
    first_up: int | None = None

    @property
    def num_groups(self) -> int:
        """Groups of nodes."""
        return int(self.group_of_node.max()) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The graph as arrays, and where in them each part stands (None = the pool has no such part)."""

    pool: Pool
    kinds: tuple[str, ...]
    """Of each vertex in ``kind``: device, scale_up, host, nic, then the tiers by name."""
    kind: Ints
    switches: Floats
    """Physical switches or NICs that a vertex stands for."""
    tail: Ints
    head: Ints
    capacity_bytes_per_s: Floats
    latency_s: Floats
    cables: Floats
    domain: int
    """Devices of one scale-up domain; 1 = no scale-up network."""
    torus_shape: tuple[int, ...] | None
    nics: int
    """NIC vertices of a node: rails where the pool is rail-optimised."""
    tiers: tuple[Tier, ...]
    first_scale_up: int | None
    """Edge of device 0 to its scale-up switch."""
    first_link: int | None
    """Edge of the first link of a mesh or torus."""
    first_host: int | None
    """Edge of device 0 to its host."""
    first_nic: int | None
    """Vertex of the first NIC."""
    first_slot: int | None
    """Edge between NICs and devices (of device 0), or between NICs and hosts (of NIC 0) where there are hosts."""
    first_cable: int | None
    """Edge of the first NIC to its leaf."""

    @property
    def num_devices(self) -> int:
        """Devices."""
        return self.pool.num_devices

    @property
    def node_size(self) -> int:
        """Devices of a node."""
        return min(self.pool.devices_per_node, self.pool.num_devices)

    @property
    def num_vertices(self) -> int:
        """Vertices."""
        return len(self.kind)

    def nic_of_device(self, device: Ints) -> Ints:
        """The NIC, within its node, that is nearest to a device."""
        local = device % self.pool.devices_per_node
        return local * self.nics // self.pool.devices_per_node

    def live_nics(self) -> NDArray[np.bool_]:
        """[node, NIC]: whether a NIC still has a cable to a leaf which has up-links."""
        num_nodes = self.pool.num_nodes
        if self.first_cable is None:
            return np.zeros((num_nodes, max(self.nics, 1)), dtype=bool)
        cables = slice(self.first_cable, self.first_cable + num_nodes * self.nics)
        live = (self.capacity_bytes_per_s[cables] > 0).reshape(num_nodes, self.nics)
        leaf = self.tiers[0]
        if leaf.first_up is not None:
            ups = self.capacity_bytes_per_s[leaf.first_up : leaf.first_up + leaf.num_groups * leaf.rails] > 0
            reaches = ups.reshape(leaf.num_groups, leaf.rails)[leaf.group_of_node]
            live = live & (reaches if leaf.rails > 1 else reaches[:, :1])
        return live

    def graph(self) -> nx.Graph:
        """The whole as a NetworkX graph: every vertex with kind and switches, every edge with its numbers.

        For a fabric of thousands of devices ask ``profiles.fabric.quotient`` instead.
        """
        import networkx as nx

        graph = nx.Graph()
        for vertex, (kind, switches) in enumerate(zip(self.kind.tolist(), self.switches.tolist(), strict=True)):
            graph.add_node(vertex, kind=self.kinds[kind], switches=switches)
        columns = (self.tail, self.head, self.capacity_bytes_per_s, self.latency_s, self.cables)
        for tail, head, capacity, latency_s, cables in zip(*(each.tolist() for each in columns), strict=True):
            if capacity > 0:
                graph.add_edge(tail, head, capacity_bytes_per_s=capacity, latency_s=latency_s, cables=cables)
        return graph
