"""A cluster scaled to N devices: whole nodes, or a part of one node."""

from __future__ import annotations

from profiles.cluster import Cluster, Pool
from profiles.errors import DocumentInvalid
from profiles.torus import is_box, torus_slice


def scale_cluster(cluster: Cluster, num_devices: int, where: str = "--devices") -> Cluster:
    """The same kind of cluster with ``num_devices`` devices.

    N must be a multiple of the devices of a node; below one node it is a sub-node allocation, whose NICs and host
    memory shrink in proportion.  A torus must have a box of N devices.  Raises DocumentInvalid with the nearest
    valid numbers; clusters of several pools cannot be scaled by one number.
    """
    if num_devices < 1:
        raise DocumentInvalid(f"{num_devices} devices cannot train anything", where=where, hint="ask for at least 1")
    if num_devices == cluster.num_devices:
        return cluster
    if len(cluster.pools) > 1:
        sizes = ", ".join(f"{pool.name}: {pool.num_nodes} nodes" for pool in cluster.pools)
        raise DocumentInvalid(
            f"cluster {cluster.name} has {len(cluster.pools)} pools ({sizes}); one number cannot scale them",
            where=where,
            hint="set num_nodes of each pool in the cluster file",
        )
    pool = cluster.pools[0]
    if not _is_valid(pool, num_devices):
        raise DocumentInvalid(
            f"{cluster.name} cannot have {num_devices} devices: a node has {pool.devices_per_node}"
            + (f" and the torus needs a box within {_shape(pool)}" if pool.scale_up.kind == "torus" else ""),
            where=where,
            hint=_nearest_hint(pool, num_devices),
        )
    scaled = (
        _part_of_node(pool, num_devices) if num_devices < pool.devices_per_node else _whole_nodes(pool, num_devices)
    )
    return cluster.model_copy(update={"pools": (scaled,)})


def part_nodes(cluster: Cluster, num_nodes: int, devices_per_node: int, where: str = "--devices") -> Cluster:
    """``num_nodes`` nodes of the cluster's kind, each with ``devices_per_node`` of its devices.

    NICs and host memory shrink in proportion, as those of a sub-node allocation.  Raises DocumentInvalid for a torus,
    which has no regular part of such a size, and as ``scale_cluster`` does.
    """
    pool = cluster.pools[0]
    if devices_per_node == pool.devices_per_node:
        return scale_cluster(cluster, num_nodes * devices_per_node, where)
    if len(cluster.pools) > 1 or pool.scale_up.kind == "torus":
        raise DocumentInvalid(
            f"{cluster.name} cannot use {devices_per_node} of the {pool.devices_per_node} devices of each node",
            where=where,
            hint="leave out the nodes that lack a device",
        )
    part = _part_of_node(pool, devices_per_node)
    scale_up = pool.scale_up
    if scale_up.domain_size > pool.devices_per_node:
        domain = min(scale_up.domain_size // pool.devices_per_node, num_nodes) * devices_per_node
        part = part.model_copy(update={"scale_up": scale_up.model_copy(update={"domain_size": domain})})
    return cluster.model_copy(update={"pools": (part.model_copy(update={"num_nodes": num_nodes}),)})


def _whole_nodes(pool: Pool, num_devices: int) -> Pool:
    return pool.model_copy(update={"num_nodes": num_devices // pool.devices_per_node})


def _part_of_node(pool: Pool, num_devices: int) -> Pool:
    scale_up = pool.scale_up
    if scale_up.domain_size > num_devices:
        update: dict[str, object] = {"domain_size": num_devices}
        if scale_up.torus_shape is not None:
            update["torus_shape"] = torus_slice(scale_up.torus_shape, num_devices)
        scale_up = scale_up.model_copy(update=update)
    nics = -(-pool.nics_per_node * num_devices // pool.devices_per_node)
    host_bytes = max(1, pool.host.memory_bytes * num_devices // pool.devices_per_node)
    return pool.model_copy(
        update={
            "num_nodes": 1,
            "devices_per_node": num_devices,
            "scale_up": scale_up,
            "nics_per_node": nics,
            "host": pool.host.model_copy(update={"memory_bytes": host_bytes}),
        }
    )


def _is_valid(pool: Pool, num_devices: int) -> bool:
    whole = num_devices % pool.devices_per_node == 0
    if not whole and num_devices > pool.devices_per_node:
        return False
    if pool.scale_up.kind != "torus" or num_devices >= pool.scale_up.domain_size:
        return True
    return is_box(_shape(pool), num_devices)


def _shape(pool: Pool) -> tuple[int, ...]:
    return pool.scale_up.torus_shape or (pool.scale_up.domain_size,)


def _nearest_hint(pool: Pool, num_devices: int) -> str:
    step = pool.devices_per_node if num_devices > pool.devices_per_node else 1
    start = num_devices - num_devices % step
    below = next(
        (n for n in range(start if start < num_devices else start - step, 0, -step) if _is_valid(pool, n)), None
    )
    # Every whole number of domains is valid, so the search above always ends.
    last = num_devices + pool.scale_up.domain_size * pool.devices_per_node + step
    above = next((n for n in range(start + step, last, step) if _is_valid(pool, n)), None)
    near = [str(n) for n in (below, above) if n is not None]
    return f"use --devices {' or '.join(near)}"
