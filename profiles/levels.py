"""Which network does a group of ranks cross, and what does it get there?

``network_levels(pool, fabric)`` flattens a pool into tiers, innermost first.  A group of ranks whose members lie
within ``devices_per_group`` consecutive devices stays inside that level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profiles.cluster import FabricLevel, Pool


@dataclass(frozen=True, slots=True)
class NetworkLevel:
    """One tier of the network.

    ``bandwidth_bytes_per_s``: one-way per device, when every device of the group sends at once.
    ``pair_bandwidth_bytes_per_s``: one-way between two devices with the level otherwise idle.
    """

    name: str
    kind: Literal["switch", "mesh", "torus", "pcie", "nic", "fabric"]
    devices_per_group: int
    bandwidth_bytes_per_s: float
    pair_bandwidth_bytes_per_s: float
    latency_s: float
    in_network_reduction: bool = False


def network_levels(pool: Pool, fabric: tuple[FabricLevel, ...] = ()) -> tuple[NetworkLevel, ...]:
    """List the tiers of one pool, innermost first; the last one covers the whole pool.

    A NIC tier gives each device ``nics_per_node * nic_bandwidth / devices_per_node``; a fabric level divides that by
    its oversubscription (cumulatively) for traffic that leaves the level below.
    """
    scale_up = pool.scale_up
    domain = min(scale_up.domain_size, pool.num_devices)
    levels: list[NetworkLevel] = []
    if scale_up.kind != "none" and domain > 1:
        levels.append(
            NetworkLevel(
                name="scale_up",
                kind=scale_up.kind,
                devices_per_group=domain,
                bandwidth_bytes_per_s=scale_up.bandwidth_bytes_per_s,
                pair_bandwidth_bytes_per_s=scale_up.pair_bandwidth_bytes_per_s or scale_up.bandwidth_bytes_per_s,
                latency_s=scale_up.latency_s,
                in_network_reduction=scale_up.in_network_reduction,
            )
        )
    if pool.num_devices <= domain:
        return tuple(levels)
    per_device = pool.nics_per_node * pool.nic_bandwidth_bytes_per_s / pool.devices_per_node
    share, latency = 1.0, pool.nic_latency_s
    covered = domain
    for level in fabric:
        size = min(level.num_nodes * pool.devices_per_node, pool.num_devices)
        latency += level.latency_s
        if size > covered:
            levels.append(_nic_level(level.name, "fabric", size, per_device / share, pool, latency))
            covered = size
        share *= level.oversubscription
    if covered < pool.num_devices:
        levels.append(_nic_level("nic", "nic", pool.num_devices, per_device / share, pool, latency))
    return tuple(levels)


def _nic_level(
    name: str, kind: Literal["nic", "fabric"], size: int, per_device: float, pool: Pool, latency_s: float
) -> NetworkLevel:
    return NetworkLevel(
        name=name,
        kind=kind,
        devices_per_group=size,
        bandwidth_bytes_per_s=per_device,
        pair_bandwidth_bytes_per_s=min(pool.nic_bandwidth_bytes_per_s, per_device * pool.devices_per_node),
        latency_s=latency_s,
    )
