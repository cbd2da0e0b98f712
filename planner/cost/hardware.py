"""What hardware does the cost model see?  One pool of equal devices with its rates and network levels."""

from __future__ import annotations

from dataclasses import dataclass

from planner.cost.efficiency import DeviceRates, device_rates
from planner.errors import DocumentInvalid
from profiles.cluster import Cluster, Pool
from profiles.levels import NetworkLevel, network_levels

FRAMEWORK_BYTES = 1_200_000_000
"""Device context, library workspaces and allocator slack of an idle training process; prior from published
one-process readings (context 300-500 MB, workspaces and fused-kernel buffers the rest)."""
COMMUNICATOR_BYTES = 350_000_000
"""Buffers of one communicator: 340-390 MB a process in AIConfigurator's tables (ai-dynamo/aiconfigurator@095f58a51)."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The pool in the units of the cost model."""

    pool: Pool
    rates: DeviceRates
    levels: tuple[NetworkLevel, ...]
    num_devices: int
    memory_bytes: int
    host_link_bytes_per_s: float
    host_memory_bytes_per_device: float

    @property
    def scale_up_devices(self) -> int:
        """Devices of the innermost network level (1 when there is none)."""
        return self.levels[0].devices_per_group if self.levels else 1


def hardware_of(cluster: Cluster, precision: str) -> Hardware:
    """Resolve the cluster for one precision.  Training plans need a single pool of equal devices."""
    if len(cluster.pools) != 1:
        raise DocumentInvalid(
            f"cluster {cluster.name} has {len(cluster.pools)} device pools; training plans are made for one pool of equal devices",
            where=f"{cluster.name}#/pools",
            hint="plan each pool by itself: keep one entry of /pools",
        )
    pool = cluster.pools[0]
    return Hardware(
        pool=pool,
        rates=device_rates(pool.device, precision),
        levels=network_levels(pool, cluster.fabric),
        num_devices=pool.num_devices,
        memory_bytes=pool.device.memory_bytes,
        host_link_bytes_per_s=pool.host.link_bandwidth_bytes_per_s,
        host_memory_bytes_per_device=pool.host.memory_bytes / pool.devices_per_node,
    )
