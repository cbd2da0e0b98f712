"""What is lost: nodes by index, by name or by number, single devices; and the equal nodes that the rest can make.

Every back-end starts the same number of processes on each node (``planner.backends.launch``: one number of processes a
node), so a node that lacks a device is left out, or every node is used with as many devices as it has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.errors import DocumentInvalid
from profiles.cluster import Cluster, Pool
from profiles.importing.hostlist import expand_hostlist
from profiles.scaling import part_nodes, scale_cluster

NodeSaid = int | str
"""A node by its index, counted from 0, or by its name."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What is said of devices that came or went; exactly one way of saying it."""

    devices: int | None = None
    """Devices from now on; with fewer of them the last nodes are the ones that went."""
    nodes: tuple[NodeSaid, ...] = ()
    num_nodes: int | None = None
    """So many nodes went, the last ones."""
    single: tuple[str, ...] = ()
    """Single devices, ``NODE:DEVICE``: the node's index or name, and the device's index within it."""
    names: tuple[str, ...] = ()
    """Names of the plan's nodes in the order of their ranks, one by one or as host lists (``gpu[01-08]``)."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Equal nodes that are left, and which devices of the old plan they are."""

    cluster: Cluster
    nodes: tuple[int | None, ...]
    """Of each node its index in the old plan; None = it is new."""
    used: tuple[tuple[int, ...], ...]
    """Of each node the devices in use, by their index in the whole node."""
    good_devices: int
    """Devices that are left in all, used or not."""
    left_out: tuple[int, ...] = ()
    """Old nodes with good devices that are not used."""
    is_part: bool = False
    """Whether single devices of the nodes are left out."""

    @property
    def devices_per_node(self) -> int:
        """Devices in use on each node."""
        return len(self.used[0])

    def part(self, num_devices: int) -> Allocation:
        """Its first devices.  Raises DocumentInvalid where they are no equal nodes."""
        if num_devices == self.cluster.num_devices:
            return self
        cluster = scale_cluster(self.cluster, num_devices)
        pool = cluster.pools[0]
        used = tuple(each[: pool.devices_per_node] for each in self.used[: pool.num_nodes])
        return Allocation(cluster, self.nodes[: pool.num_nodes], used, self.good_devices, self.left_out, self.is_part)

    def origins(self, whole_per_node: int, world_size: int) -> list[int | None]:
        """For each device the rank that it had in the old plan of ``world_size`` ranks; None = it had none."""
        found: list[int | None] = []
        for node, devices in zip(self.nodes, self.used, strict=True):
            for device in devices:
                origin = None if node is None else node * whole_per_node + device
                found.append(origin if origin is not None and origin < world_size else None)
        return found


def check_said(lost: Lost, *, where: str = "/lost_nodes") -> None:
    """Refuse what cannot mean anything, whatever the plan.  Raises DocumentInvalid."""
    ways = [lost.devices is not None, bool(lost.nodes or lost.single), lost.num_nodes is not None]
    if sum(ways) != 1:
        raise DocumentInvalid(
            "say either how many devices there are or which nodes are lost",
            where=where,
            hint="give one of: the devices from now on, the lost nodes and devices, the number of lost nodes",
        )
    names = _names(lost)
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DocumentInvalid(f"the node name {twice[0]} stands twice", where="/node_names", hint="name each node once")
    known = set(names)
    for said in lost.nodes:
        _known(said, known, where)
    for text in lost.single:
        _known(_device(text)[0], known, "/lost_devices")


def allocations(cluster: Cluster, lost: Lost) -> tuple[Allocation, ...]:
    """Equal nodes of what is left, most devices first; more than one where nodes have lost single devices.

    Raises DocumentInvalid for unknown nodes and devices, for what is said in two ways, and where nothing is left.
    """
    check_said(lost)
    pool = cluster.pools[0]
    per_node, count = pool.devices_per_node, pool.num_nodes
    if lost.devices is not None or lost.num_nodes is not None:
        wanted = (count - (lost.num_nodes or 0)) * per_node if lost.devices is None else lost.devices
        return (_resized(cluster, wanted, lost),)
    good = [set(range(per_node)) for _ in range(count)]
    names = _names(lost)
    if names and len(names) != count:
        raise DocumentInvalid(
            f"{len(names)} node names are given and the plan has {count} nodes",
            where="/node_names",
            hint="name the nodes of the plan in the order of their ranks",
        )
    places = {name: index for index, name in enumerate(names)}
    for said in lost.nodes:
        good[_index(said, places, count, "/lost_nodes")].clear()
    for text in lost.single:
        node, device = _device(text)
        if device >= per_node:
            raise DocumentInvalid(
                f"a node has {per_node} devices",
                where="/lost_devices",
                hint=f"devices are counted from 0 to {per_node - 1}",
            )
        good[_index(node, places, count, "/lost_devices")].discard(device)
    found = list(_equal_nodes(cluster, good))
    if not found:
        raise DocumentInvalid("no device is left", where="/lost_nodes", hint="name the nodes that are really gone")
    return tuple(sorted(found, key=lambda each: -each.cluster.num_devices))


def _equal_nodes(cluster: Cluster, good: Sequence[set[int]]) -> Iterable[Allocation]:
    """For each number of devices a node the nodes that have so many; none that another one holds."""
    most = 0
    for size in sorted({len(each) for each in good if each}, reverse=True):
        nodes = [index for index, each in enumerate(good) if len(each) >= size]
        if len(nodes) * size <= most:
            continue
        try:
            part = part_nodes(cluster, len(nodes), size, "/lost_devices")
        except DocumentInvalid:
            if size == cluster.pools[0].devices_per_node:
                raise
            continue
        most = len(nodes) * size
        used = tuple(tuple(sorted(good[index])[:size]) for index in nodes)
        left_out = tuple(index for index, each in enumerate(good) if each and index not in set(nodes))
        count = sum(len(each) for each in good)
        yield Allocation(part, tuple(nodes), used, count, left_out, size < cluster.pools[0].devices_per_node)


def _resized(cluster: Cluster, wanted: int, lost: Lost) -> Allocation:
    if wanted < 1:
        raise DocumentInvalid("no device is left", where="/lost_nodes", hint="name the nodes that are really gone")
    old, scaled = cluster.pools[0], scale_cluster(cluster, wanted)
    pool: Pool = scaled.pools[0]
    nodes = tuple(index if index < old.num_nodes else None for index in range(pool.num_nodes))
    return Allocation(scaled, nodes, (tuple(range(pool.devices_per_node)),) * pool.num_nodes, wanted)


def _names(lost: Lost) -> list[str]:
    return [name for text in lost.names for name in expand_hostlist(text, "/node_names")]


def _device(text: str) -> tuple[NodeSaid, int]:
    node, colon, device = text.strip().rpartition(":")
    if not colon or not node or not (device.isascii() and device.isdigit() and len(device) < 10):
        raise DocumentInvalid(
            f"{text!r} is no device", where="/lost_devices", hint="write NODE:DEVICE, for example 3:5"
        )
    return node, int(device)


def _is_index(said: NodeSaid) -> bool:
    return isinstance(said, int) or (said.isascii() and said.isdigit() and len(said) < 10)


def _known(said: NodeSaid, names: set[str], where: str) -> None:
    if said in names or _is_index(said):
        return
    if names:
        raise DocumentInvalid(f"no node of the plan is named {said!r}", where=where, hint="name one of the node names")
    raise DocumentInvalid(
        f"{said!r} is no index of a node, and the plan's nodes have no names here",
        where=where,
        hint="count the nodes from 0, as 0,3,4, or give the names of the plan's nodes in the order of their ranks",
    )


def _index(said: NodeSaid, places: dict[str, int], count: int, where: str) -> int:
    index = places.get(str(said))
    if index is None:
        _known(said, set(places), where)
        index = int(said)
    if not 0 <= index < count:
        raise DocumentInvalid(
            f"the plan has {count} nodes", where=where, hint=f"nodes are counted from 0 to {count - 1}"
        )
    return index
