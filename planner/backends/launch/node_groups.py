"""Nodes of several kinds in one job: which node ranks each kind has, and what launchers call it.

The cluster of a plan over unequal devices lists its nodes in the order of the ranks, one pool a kind (and one more
where a part of a node is used).  Launchers tell the kinds apart by a name that the site gives its nodes: a label in
Kubernetes, a resource in Ray, an own part of the job (``hetjob``) in Slurm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.cluster import Cluster

NODE_LABEL = "meshwright/pool"
"""Kubernetes: the label of nodes that says of which pool they are."""
_LONGEST = 15
"""Letters of a name: pods append it and two indices to the job's name, and the sum must stay a label of 63."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Equal nodes with consecutive node ranks."""

    name: str
    """A DNS label, unlike those of the other groups."""
    pool: str
    """The same for groups on nodes of one kind."""
    device: str
    num_nodes: int
    devices_per_node: int
    first_node: int
    """Node rank of its first node."""

    @property
    def node_ranks(self) -> str:
        """``0 .. 3``, or ``4``."""
        last = self.first_node + self.num_nodes - 1
        return f"{self.first_node} .. {last}" if self.num_nodes > 1 else f"{last}"

    @property
    def words(self) -> str:
        """``node ranks 0 .. 3 are 4 nodes of dgx-a100 with 8 x a100-sxm4-40gb``."""
        several = self.num_nodes > 1
        nodes = f"{self.num_nodes} nodes" if several else "a node"
        start = f"node rank{'s' if several else ''} {self.node_ranks} {'are' if several else 'is'} {nodes}"
        return f"{start} of {self.pool} with {self.devices_per_node} x {self.device}"

    @property
    def ray_resource(self) -> str:
        """What Ray calls a node of this kind."""
        return f"pool-{self.pool}"


def node_groups(cluster: Cluster) -> tuple[NodeGroup, ...]:
    """The groups of a cluster with several pools, in the order of the ranks; none of a cluster with one."""
    if len(cluster.pools) == 1:
        return ()
    groups, before, labels, names = [], 0, dict[str, str](), set[str]()
    for pool in cluster.pools:
        label = labels.setdefault(pool.name, _unlike(_label(pool.name), set(labels.values())))
        name = _unlike(label, names)
        names.add(name)
        groups.append(NodeGroup(name, label, pool.device.name, pool.num_nodes, pool.devices_per_node, before))
        before += pool.num_nodes
    return tuple(groups)


def _label(name: str) -> str:
    label = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_LONGEST].strip("-") or "pool"
    return label if label[0].isalpha() else f"p-{label}"[:_LONGEST].rstrip("-")


def _unlike(label: str, taken: set[str]) -> str:
    """The label, or the first of ``label-2``, ``label-3`` and so on that nobody has."""
    found, number = label, 1
    while found in taken:
        number += 1
        found = f"{label[: _LONGEST - 1 - len(str(number))].rstrip('-')}-{number}"
    return found
