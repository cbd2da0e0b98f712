"""A machine's wiring as its own tools report it: facts only, no host names; None = the source is silent.

``profiles.complete_cluster`` turns a topology into a ``Cluster`` or completes one from the catalogue.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from profiles.document import Document

LinkType = Literal[
    "self", "nvlink", "xgmi", "hccs", "hccs_switch", "sio", "c2c", "pcie_switch", "pcie_bridges", "pcie_host", "numa",
    "system", "metaxlink", "ub", "ethernet", "none", "unknown",
]  # fmt: skip


class DevicePair(Document):
    """How two devices of one node are joined: ``nvlink`` with the number of links, ``pcie_switch`` (PIX), ..."""

    first: int = Field(ge=0)
    second: int = Field(ge=0)
    link: LinkType
    num_links: int | None = Field(default=None, ge=0)
    bandwidth_bytes_per_s: float | None = Field(default=None, gt=0, description="one-way, all links of the pair")
    reported: str = Field(default="", description="as the tool says it: NV18, PIX, SYS, HCCS")


class Nic(Document):
    """One network interface of a node; ``nearest_devices`` share its PCIe switch (or are as near as any)."""

    index: int = Field(ge=0)
    bandwidth_bytes_per_s: float | None = Field(default=None, gt=0, description="one-way")
    kind: str = Field(default="", description="ib, roce, efa, ethernet, slingshot")
    numa_node: int | None = None
    nearest_devices: tuple[int, ...] = ()
    link: LinkType | None = Field(default=None, description="what stands between it and its nearest devices")
    direct: bool | None = Field(default=None, description="devices reach it without host memory (GDR)")


class NodeTopology(Document):
    """One kind of node: devices, how each pair is joined, NICs, CPU sockets."""

    num_devices: int = Field(gt=0)
    device_reported: str = ""
    pairs: tuple[DevicePair, ...] = ()
    nics: tuple[Nic, ...] = ()
    numa_node_of_device: tuple[int | None, ...] = ()
    num_numa_nodes: int | None = Field(default=None, ge=0)
    switched: bool | None = Field(default=None, description="devices are joined by a switch (NVSwitch), not a mesh")
    host_link_bandwidth_bytes_per_s: float | None = Field(default=None, gt=0, description="one device to its host")
    cpu: str = Field(default="", description="vendor or architecture as reported")


class NetworkTier(Document):
    """One level of the network, innermost first: ``groups`` lists the nodes (by number) under each switch or block.

    ``kind``: a ``switch`` of the fabric, a ``block`` of nodes that the scheduler keeps together (often, not always, one
    NVLink domain), or a ``scale_up`` domain for certain.
    """

    name: str = Field(min_length=1, description="block, leaf, spine, superpod, core")
    groups: tuple[tuple[int, ...], ...]
    kind: Literal["switch", "block", "scale_up"] = "switch"
    link_bandwidth_bytes_per_s: float | None = Field(default=None, gt=0, description="one-way, one up-link")
    uplinks_per_group: tuple[int, ...] = ()
    downlinks_per_group: tuple[int, ...] = ()
    downlink_bandwidth_bytes_per_s: float | None = Field(default=None, gt=0, description="one-way, one down-link")


class Topology(Document):
    """Nodes and network of one cluster as far as one source tells.  Nodes are numbered, never named."""

    schema_version: Literal[1] = 1
    num_nodes: int | None = Field(default=None, gt=0)
    node: NodeTopology | None = Field(default=None, description="the (commonest) kind of node")
    nics: tuple[Nic, ...] = Field(default=(), description="NICs of a node where the source does not show its devices")
    rail_optimized: bool | None = Field(default=None, description="NIC i of every node of a group sits on one switch")
    devices_of_node: tuple[int, ...] = Field(default=(), description="devices by node where they differ or are listed")
    tiers: tuple[NetworkTier, ...] = Field(default=(), description="innermost first")
    torus_shape: tuple[int, ...] | None = None
    scale_up_domain_size: int | None = Field(default=None, gt=0, description="devices in one NVLink/HCCS domain")
    rank_order: tuple[tuple[int, int], ...] = Field(default=(), description="(node, device) of rank 0, 1, ...")
    irregular: tuple[str, ...] = Field(default=(), description="what breaks the symmetry, in words")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the wiring."""
        return self.content_hash()
