"""The cluster document: pools of equal nodes, their scale-up domains, NICs and the fabric between them.

Conventions: bandwidth is one-way, per device unless the name says otherwise; seconds and bytes.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from profiles.device import Device, Provenance
from profiles.document import Document

NicTransport = Literal["infiniband", "roce", "efa", "tcpx", "ethernet", "slingshot"]


class ScaleUp(Document):
    """The fast network inside a scale-up domain (NVLink, xGMI, HCCS, UB, ICI, NeuronLink, PCIe).

    ``switch``: any subset of the domain gets the full rate.  ``mesh``: a pair gets ``pair_bandwidth``; a group of g
    gets (g-1) links.  ``torus``: rings per axis (``torus_shape``).  ``pcie``: shared host tree.
    """

    kind: Literal["switch", "mesh", "torus", "pcie", "none"]
    name: str = ""
    domain_size: int = Field(gt=0, description="devices in one domain; may span nodes (NVL72: 72)")
    bandwidth_bytes_per_s: float = Field(gt=0, description="one-way, per device, all links together")
    pair_bandwidth_bytes_per_s: float | None = Field(default=None, gt=0, description="one-way between two devices")
    latency_s: float = Field(gt=0)
    torus_shape: tuple[int, ...] | None = None
    in_network_reduction: bool = Field(default=False, description="NVLS-like multicast and reduction in the switch")


class Host(Document):
    """The node's CPU side: what offload uses."""

    memory_bytes: int = Field(gt=0, description="per node")
    link_bandwidth_bytes_per_s: float = Field(gt=0, description="device to host, one-way, per device")


class Pool(Document):
    """Equal nodes of one device type."""

    name: str = "default"
    device: Device
    num_nodes: int = Field(gt=0)
    devices_per_node: int = Field(gt=0)
    scale_up: ScaleUp
    nics_per_node: int = Field(ge=0)
    nic_bandwidth_bytes_per_s: float = Field(ge=0, description="one-way, per NIC")
    nic_latency_s: float = Field(default=5e-6, gt=0)
    rail_optimized: bool = Field(default=True, description="NIC i of every node sits on leaf/rail i")
    nic_transport: NicTransport | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="how the NICs move data: infiniband, roce, efa (AWS), tcpx (GPUDirect-TCPX and TCPXO), ethernet"
        " (TCP), slingshot; absent = not known, taken as InfiniBand or RoCE",
    )
    host: Host

    @property
    def num_devices(self) -> int:
        """Devices in the pool."""
        return self.num_nodes * self.devices_per_node


class FabricLevel(Document):
    """A tier of switches above the NICs: ``num_nodes`` nodes share one switch of this level."""

    name: str = Field(min_length=1, description="leaf, spine, core, dcn")
    num_nodes: int = Field(gt=0)
    oversubscription: float = Field(default=1.0, ge=1.0, description="capacity below over capacity above")
    latency_s: float = Field(default=1e-6, ge=0)


class Cluster(Document):
    """Pools of nodes joined by fabric levels, innermost level first."""

    schema_version: Literal[1] = 1
    name: str = Field(min_length=1)
    pools: tuple[Pool, ...] = Field(min_length=1)
    fabric: tuple[FabricLevel, ...] = ()
    price_per_device_hour: float | None = Field(default=None, gt=0)
    provenance: dict[str, Provenance] = Field(default_factory=dict)

    @property
    def num_devices(self) -> int:
        """Devices in all pools."""
        return sum(pool.num_devices for pool in self.pools)
