"""A part of a cluster: whole nodes, or equal parts of nodes."""

from __future__ import annotations

from profiles.cluster import Cluster
from profiles.errors import DocumentInvalid
from profiles.scaling import part_nodes, scale_cluster


def cluster_part(cluster: Cluster, num_devices: int) -> Cluster:
    """So many devices of a cluster: whole nodes, else the same number of each of as few nodes as possible."""
    try:
        return scale_cluster(cluster, num_devices)
    except DocumentInvalid:
        node = cluster.pools[0].devices_per_node
        nodes = next(
            count for count in range(1, num_devices + 1) if not num_devices % count and num_devices <= count * node
        )
        return part_nodes(cluster, nodes, num_devices // nodes)
