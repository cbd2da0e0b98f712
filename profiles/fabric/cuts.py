"""Cuts of the fabric: what two sets of devices can send each other, the bisection of a group, distances.

The bisection of a group is the least cut between two halves of it.  Finding the halves is hard in general
(NP-hard); tried are those that follow the fabric: consecutive halves from every border of a block of the network, and
each axis of a torus cut across.  It is an upper bound; where every halving was tried (8 devices,
tests/oracle/test_fabric_graph.py) it is the least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from profiles.errors import DocumentInvalid
from profiles.fabric.fabric import Fabric, Ints
from profiles.fabric.quotient import folded

MOST_STARTS = 3
"""Borders of one kind of block from which halves are taken; by symmetry further ones say the same."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The least links between two sets: one-way capacity of all of them, and where they are."""

    capacity_bytes_per_s: float
    cables: float
    between: tuple[tuple[str, str], ...]
    """Kinds of the vertices on both sides."""


def minimum_cut(fabric: Fabric, near: Ints, far: Ints) -> Cut:
    """The least cut between two sets of devices.  Raises DocumentInvalid for sets that are empty or overlap."""
    import networkx as nx

    if not len(near) or not len(far) or len(np.intersect1d(near, far)):
        raise DocumentInvalid(
            "a cut lies between two sets without common devices", where="devices", hint="give two disjoint sets"
        )
    label = np.zeros(fabric.num_vertices, dtype=np.int64)
    label[near], label[far] = 1, 2
    graph, _ = folded(fabric, label)
    for each, said in list(graph.nodes(data="label")):
        if said:
            graph.add_edge("near" if said == 1 else "far", each)  # no capacity = without limit
    value, (inside, _) = nx.minimum_cut(graph, "near", "far", capacity="capacity_bytes_per_s")
    crossing = [
        (graph.nodes[a]["kind"], graph.nodes[b]["kind"], data["cables"])
        for a, b, data in graph.edges(data=True)
        if (a in inside) != (b in inside)
    ]
    kinds = tuple(sorted({(min(a, b), max(a, b)) for a, b, _ in crossing}))
    return Cut(float(value), float(sum(cables for _, _, cables in crossing)), kinds)


def bisection(fabric: Fabric, devices: Ints | None = None) -> Cut:
    """The least cut between two halves of a group (all devices; an odd one is left out), of the halves tried."""
    members = np.arange(fabric.num_devices) if devices is None else np.sort(devices)
    if len(members) < 2:
        raise DocumentInvalid("one device has no halves", where="devices", hint="give at least two")
    cuts = [minimum_cut(fabric, near, far) for near, far in _halves(fabric, members)]
    return min(cuts, key=lambda cut: cut.capacity_bytes_per_s)


def _halves(fabric: Fabric, members: Ints) -> Iterator[tuple[Ints, Ints]]:
    half, seen = len(members) // 2, set[bytes]()
    orders = [members]
    if fabric.torus_shape is not None:
        step = 1
        for length in reversed(fabric.torus_shape):
            orders.append(members[np.argsort(members // step % length, kind="stable")])
            step *= length
    for order in orders:
        for start in _starts(fabric, order):
            turned = np.roll(order, -start)
            near, far = np.sort(turned[:half]), np.sort(turned[half : 2 * half])
            key = near.tobytes()
            if key not in seen:
                seen.update((key, far.tobytes()))
                yield near, far


def _starts(fabric: Fabric, order: Ints) -> list[int]:
    """The first device, and the first ones of blocks: where halves may begin."""
    found = {0}
    sizes = [fabric.domain, fabric.node_size]
    blocks = [order // size for size in sizes if size > 1]
    blocks += [tier.group_of_node[order // fabric.node_size] for tier in fabric.tiers]
    for block in blocks:
        borders = np.flatnonzero(np.diff(block)) + 1
        if len(np.unique(np.diff(np.r_[0, borders, len(order)]))) > 1 or len(borders) % 2 == 0:
            found.update(borders[:MOST_STARTS].tolist())
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Distance:
    """The way from one device to another: links, the sum of their latencies, and the narrowest of them."""

    links: int
    latency_s: float
    narrowest_bytes_per_s: float


def distance(fabric: Fabric, source: int, target: int) -> Distance:
    """How far a message goes; nothing for a device to itself."""
    from profiles.fabric.routes import routes

    edges = routes(fabric, np.array([source]), np.array([target])).link // 2
    rates = fabric.capacity_bytes_per_s[edges]
    return Distance(len(edges), float(fabric.latency_s[edges].sum()), float(rates.min(initial=np.inf)))
