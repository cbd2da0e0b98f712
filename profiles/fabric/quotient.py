"""The fabric with equal parts folded into one: a NetworkX graph of a few dozen vertices for any number of devices.

Vertices are equal when they are of one kind and have links of the same capacities to equal vertices (colour refinement,
the coarsest equitable partition).  A flow between two sets that the partition respects can be averaged over its
classes, so maximum flow and minimum cut of the folded graph are those of the whole (Grohe, Kersting, Mladenov and
Selman, Dimension Reduction via Colour Refinement, ESA 2014).  16,384 devices in a fat tree fold into some ten classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profiles.fabric.fabric import Fabric, Floats, Ints

if TYPE_CHECKING:
    import networkx as nx

_Words = NDArray[np.uint64]


def classes_of(fabric: Fabric, label: Ints) -> Ints:
    """[vertex]: the class of each, those with different ``label`` apart.  Signatures are hashes of 64 bits."""
    live = fabric.capacity_bytes_per_s > 0
    tail, head = fabric.tail[live], fabric.head[live]
    here, there = np.concatenate([tail, head]), np.concatenate([head, tail])
    rates, rank = np.unique(fabric.capacity_bytes_per_s[live], return_inverse=True)
    order = np.argsort(here, kind="stable")
    there, weight = there[order], _mixed(np.tile(rank, 2)[order].astype(np.uint64) + np.uint64(len(rates)))
    degree = np.bincount(here, minlength=fabric.num_vertices)
    ends = np.cumsum(degree)
    _, colour = np.unique(fabric.kind * (int(label.max()) + 1) + label, return_inverse=True)
    count = -1
    while (found := int(colour.max()) + 1) != count:
        count = found
        sums = np.zeros(len(there) + 1, dtype=np.uint64)
        np.cumsum(_mixed(_mixed(colour.astype(np.uint64))[there] ^ weight), out=sums[1:])
        signature = sums[ends] - sums[ends - degree]
        _, colour = np.unique(_mixed(signature) ^ _mixed(~colour.astype(np.uint64)), return_inverse=True)
    found_classes: Ints = colour.astype(np.int64)
    return found_classes


def folded(fabric: Fabric, label: Ints) -> tuple[nx.Graph, Ints]:
    """The graph of classes, and the class of each vertex.

    A class has ``kind``, ``label``, ``count`` (vertices) and ``switches`` (physical ones); an edge the
    ``capacity_bytes_per_s``, ``links`` and ``cables`` of all links between two classes and the ``latency_s`` of one.
    """
    import networkx as nx

    colour = classes_of(fabric, label)
    count = int(colour.max()) + 1
    graph, example = nx.Graph(), np.unique(colour, return_index=True)[1]
    sizes, switches = np.bincount(colour), np.bincount(colour, weights=fabric.switches)
    for each in range(count):
        vertex = int(example[each])
        kind, said = fabric.kinds[int(fabric.kind[vertex])], int(label[vertex])
        graph.add_node(each, kind=kind, label=said, count=int(sizes[each]), switches=float(switches[each]))
    live = (fabric.capacity_bytes_per_s > 0) & (colour[fabric.tail] != colour[fabric.head])
    ends = np.sort(np.stack([colour[fabric.tail], colour[fabric.head]])[:, live], axis=0)
    pairs, first, place, links = np.unique(
        ends[0] * count + ends[1], return_index=True, return_inverse=True, return_counts=True
    )
    capacity, cables = (_sums(place, each[live], len(pairs)) for each in (fabric.capacity_bytes_per_s, fabric.cables))
    for index, pair in enumerate(pairs.tolist()):
        graph.add_edge(
            *divmod(pair, count),
            capacity_bytes_per_s=float(capacity[index]),
            links=int(links[index]),
            cables=float(cables[index]),
            latency_s=float(fabric.latency_s[live][first[index]]),
        )
    return graph, colour


def _sums(place: Ints, values: Floats, count: int) -> Floats:
    return np.bincount(place, weights=values, minlength=count).astype(np.float64)


def _mixed(words: _Words) -> _Words:
    """Bits spread over the whole word (splitmix64: Steele, Lea and Flood, OOPSLA 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
