"""The network level that a group of ranks crosses, and the group's bandwidth there.

``network_levels(pool, fabric)`` flattens a pool into tiers, innermost first.  A group of ranks whose members lie
within ``devices_per_group`` consecutive devices stays inside that level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profiles.cluster import FabricLevel, Pool
from profiles.errors import DocumentInvalid
from profiles.torus import torus_links, torus_slice


@dataclass(frozen=True, slots=True)
class NetworkLevel:
    """One tier of the network.

    ``bandwidth_bytes_per_s``: one-way per device, when every device of the group sends at once.
    ``pair_bandwidth_bytes_per_s``: one-way between two devices with the level otherwise idle.
    ``torus_shape``: devices along each axis, last axis numbered fastest; only for ``kind`` torus.
    """

    name: str
    kind: Literal["switch", "mesh", "torus", "pcie", "nic", "fabric"]
    devices_per_group: int
    bandwidth_bytes_per_s: float
    pair_bandwidth_bytes_per_s: float
    latency_s: float
    in_network_reduction: bool = False
    torus_shape: tuple[int, ...] | None = None


def network_levels(pool: Pool, fabric: tuple[FabricLevel, ...] = ()) -> tuple[NetworkLevel, ...]:
    """List the tiers of one pool, innermost first; the last one covers the whole pool.

    1. ``scale_up``: the domain, or the part of it that the pool has (a sub-node allocation, half a rack).
    2. ``node``: where a domain is smaller than its node, its neighbours are reached through the host: one host link.
    3. NICs: each device gets ``nics_per_node * nic_bandwidth / devices_per_node``; a fabric level's oversubscription
       divides what leaves that level, cumulatively.

    Empty for a pool of one device.  Raises DocumentInvalid if the pool needs NICs and has none.
    """
    levels: list[NetworkLevel] = []
    covered = 1
    inner = _scale_up_level(pool)
    if inner is not None:
        levels.append(inner)
        covered = inner.devices_per_group
    node = min(pool.devices_per_node, pool.num_devices)
    if covered < node:
        levels.append(_host_level(pool, node))
        covered = node
    if covered < pool.num_devices:
        levels.extend(_nic_levels(pool, fabric, covered))
    return tuple(levels)


def group_bandwidth_bytes_per_s(
    level: NetworkLevel, group_size: ArrayLike, stride: ArrayLike = 1
) -> NDArray[np.float64]:
    """One-way bandwidth of each member of a group of ``group_size`` devices, ``stride`` apart, inside ``level``.

    switch, pcie, nic, fabric: the level's full rate, whatever the group.  mesh: a member has one link to each other
    member, (g - 1) pair rates.  torus: the rings that the group occupies (``profiles.torus``).
    Arguments broadcast; sibling groups are taken to run at the same time.  A group of one gets one link (never zero,
    so that callers may divide).
    """
    size, step = np.broadcast_arrays(np.asarray(group_size, dtype=np.float64), np.asarray(stride, dtype=np.float64))
    rate = np.full(size.shape, level.bandwidth_bytes_per_s, dtype=np.float64)
    if level.kind == "mesh":
        rate = np.minimum(rate, np.maximum(size - 1, 1.0) * level.pair_bandwidth_bytes_per_s)
    elif level.kind == "torus" and level.torus_shape is not None:
        rate = np.minimum(rate, level.pair_bandwidth_bytes_per_s * torus_links(level.torus_shape, size, step))
    return rate


def _scale_up_level(pool: Pool) -> NetworkLevel | None:
    scale_up = pool.scale_up
    domain = min(scale_up.domain_size, pool.num_devices)
    if scale_up.kind == "none" or domain <= 1:
        return None
    rate, pair, shape = scale_up.bandwidth_bytes_per_s, scale_up.pair_bandwidth_bytes_per_s, scale_up.torus_shape
    if scale_up.kind == "mesh":
        pair = pair or rate / max(scale_up.domain_size - 1, 1)
        rate = min(rate, pair * (domain - 1))
    elif scale_up.kind == "torus":
        whole = shape or (scale_up.domain_size,)
        shape = whole if domain == scale_up.domain_size else torus_slice(whole, domain)
        pair = pair or rate / (2 * len(shape))
        rate = min(rate, pair * float(torus_links(shape, domain, 1)))
    return NetworkLevel(
        name="scale_up",
        kind=scale_up.kind,
        devices_per_group=domain,
        bandwidth_bytes_per_s=rate,
        pair_bandwidth_bytes_per_s=pair or rate,
        latency_s=scale_up.latency_s,
        in_network_reduction=scale_up.in_network_reduction,
        torus_shape=shape if scale_up.kind == "torus" else None,
    )


def _host_level(pool: Pool, num_devices: int) -> NetworkLevel:
    """Domains of one node talk through the host.  Its latency is the NIC's: both paths cross PCIe twice."""
    rate = pool.host.link_bandwidth_bytes_per_s
    return NetworkLevel(
        name="node",
        kind="pcie",
        devices_per_group=num_devices,
        bandwidth_bytes_per_s=rate,
        pair_bandwidth_bytes_per_s=rate,
        latency_s=pool.nic_latency_s,
    )


def _nic_levels(pool: Pool, fabric: tuple[FabricLevel, ...], covered: int) -> list[NetworkLevel]:
    node_rate = pool.nics_per_node * pool.nic_bandwidth_bytes_per_s
    if node_rate <= 0:
        raise DocumentInvalid(
            f"pool {pool.name} has {pool.num_devices} devices beyond one scale-up domain, and no NICs to join them",
            where="/nics_per_node",
            hint="give nics_per_node and nic_bandwidth_bytes_per_s",
        )
    levels: list[NetworkLevel] = []
    share, latency_s = 1.0, pool.nic_latency_s
    for tier in fabric:
        size = min(tier.num_nodes * pool.devices_per_node, pool.num_devices)
        latency_s += tier.latency_s
        if size > covered:
            levels.append(_nic_level(tier.name, "fabric", size, node_rate / share, pool, latency_s))
            covered = size
        share *= tier.oversubscription
    if covered < pool.num_devices:
        levels.append(_nic_level("nic", "nic", pool.num_devices, node_rate / share, pool, latency_s))
    return levels


def _nic_level(
    name: str, kind: Literal["nic", "fabric"], size: int, node_rate: float, pool: Pool, latency_s: float
) -> NetworkLevel:
    # With more NICs than devices a device drives several of them at once (EFA: four a GPU).
    own_nics = max(1, pool.nics_per_node // pool.devices_per_node)
    return NetworkLevel(
        name=name,
        kind=kind,
        devices_per_group=size,
        bandwidth_bytes_per_s=node_rate / pool.devices_per_node,
        pair_bandwidth_bytes_per_s=min(own_nics * pool.nic_bandwidth_bytes_per_s, node_rate),
        latency_s=latency_s,
    )
