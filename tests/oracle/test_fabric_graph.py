"""The fabric graph: equal to the closed forms of the levels, its cuts to NetworkX and to every halving."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from planner.predict.collective import Links, members_within
from profiles.catalogue import load_cluster
from profiles.cluster import Cluster
from profiles.errors import DocumentInvalid, NotFound
from profiles.fabric.build import fabric_of
from profiles.fabric.cuts import bisection, distance, minimum_cut
from profiles.fabric.fabric import Fabric
from profiles.fabric.failures import without, without_cable
from profiles.fabric.routes import routes
from profiles.fabric.shares import fair_rates
from profiles.fabric.traffic import Pattern, joined, load_of, strided_groups
from profiles.levels import group_bandwidth_bytes_per_s, network_levels
from profiles.topology import NetworkTier


def small(name: str, nodes: int, **pool: object) -> Cluster:
    cluster = load_cluster(name)
    first = cluster.pools[0].model_copy(update={"num_nodes": nodes, **pool})
    return cluster.model_copy(update={"pools": (first,)})


def closed_s(cluster: Cluster, size: int, stride: int, pattern: Pattern) -> float:
    """Seconds a byte of the link that is busy longest, by the levels' closed forms at full line rate."""
    levels, links, below = network_levels(cluster.pools[0], cluster.fabric), Links(), np.ones(())
    for index, level in enumerate(levels):
        members, step = np.asarray(float(size)), np.asarray(float(stride))
        inside = members if index == len(levels) - 1 else members_within(level, members, step)
        parts = inside / below
        amount = (parts - 1) / parts / below if pattern == "ring" else (inside - below) / size
        links.add(level, 1 / group_bandwidth_bytes_per_s(level, inside, stride), amount)
        below = inside
    return float(np.max(links.longest_s()))


def slowest(fabric: Fabric, size: int, stride: int, pattern: Pattern) -> float:
    groups = strided_groups(fabric.num_devices, ((size, stride),))
    return float(fair_rates(fabric, load_of(fabric, groups, pattern)).min())


@pytest.mark.parametrize(
    ("name", "devices", "size", "stride"),
    [
        ("dgx-h100", 512, 8, 1),
        ("dgx-h100", 512, 64, 8),
        ("dgx-h100", 512, 8, 32),
        ("dgx-h100", 512, 32, 1),
        ("mi300x-8", 16, 4, 1),
        ("mi300x-8", 16, 4, 2),
        ("mi300x-8", 64, 8, 8),
        ("h100-pcie-8", 32, 8, 4),
        ("h100-pcie-8", 16, 16, 1),
        ("l40s-8", 32, 4, 8),
        ("gb200-nvl72", 144, 8, 1),
        ("trn2", 16, 4, 1),
        ("trn2", 16, 4, 4),
        ("trn2", 16, 16, 1),
    ],
)
def test_a_ring_gets_what_the_levels_say(name: str, devices: int, size: int, stride: int) -> None:
    cluster = load_cluster(name, devices)
    graph_s = 1 / slowest(fabric_of(cluster), size, stride, "ring")
    assert graph_s == pytest.approx(closed_s(cluster, size, stride, "ring"), rel=1e-9)


@pytest.mark.parametrize(("size", "stride"), [(8, 1), (16, 1), (4, 8), (64, 1)])
def test_an_exchange_gets_what_the_levels_say(size: int, stride: int) -> None:
    cluster = load_cluster("dgx-h100", 64)
    graph_s = 1 / slowest(fabric_of(cluster), size, stride, "all_to_all")
    assert graph_s == pytest.approx(closed_s(cluster, size, stride, "all_to_all"), rel=1e-9)


def test_oversubscribed_leaves_divide_what_leaves_them() -> None:
    cluster = load_cluster("dgx-h100", 512)
    leaf, *above = cluster.fabric
    cluster = cluster.model_copy(update={"fabric": (leaf.model_copy(update={"oversubscription": 4.0}), *above)})
    fabric = fabric_of(cluster)
    assert 1 / slowest(fabric, 2, 256, "ring") == pytest.approx(closed_s(cluster, 2, 256, "ring"))
    cut = bisection(fabric)
    assert cut.capacity_bytes_per_s == pytest.approx(256 * 50e9 / 4)
    assert cut.between == (("leaf", "spine"),)


@pytest.mark.parametrize("name", ["dgx-h100", "h100-pcie-8", "mi300x-8"])
def test_cuts_of_the_folded_graph_are_those_of_the_whole(name: str) -> None:
    fabric = fabric_of(small(name, 2))
    graph = fabric.graph()
    rng = np.random.default_rng(7)
    for _ in range(3):
        chosen = rng.permutation(fabric.num_devices)[:6]
        near, far = chosen[:3], chosen[3:]
        whole = graph.copy()
        whole.add_edges_from([("near", int(each)) for each in near] + [("far", int(each)) for each in far])
        value = nx.maximum_flow_value(whole, "near", "far", capacity="capacity_bytes_per_s")
        assert minimum_cut(fabric, near, far).capacity_bytes_per_s == pytest.approx(value)


def test_bisection_is_the_least_of_all_halvings() -> None:
    fabric = fabric_of(small("dgx-h100", 4, devices_per_node=2, nics_per_node=2))
    every = range(fabric.num_devices)
    least = min(
        minimum_cut(fabric, np.array(half), np.setdiff1d(every, half)).capacity_bytes_per_s
        for half in combinations(every, len(every) // 2)
        if 0 in half
    )
    assert bisection(fabric).capacity_bytes_per_s == pytest.approx(least)


def test_bisection_of_a_torus_cuts_its_longest_axis() -> None:
    # 4 x 4, closed rings of links of 160 GB/s: a cut across an axis crosses each of its 4 rings twice.
    assert bisection(fabric_of(load_cluster("trn2", 16))).capacity_bytes_per_s == pytest.approx(8 * 160e9)


def test_ways_are_as_long_as_the_levels_say() -> None:
    cluster = load_cluster("dgx-h100", 512)
    fabric, levels = fabric_of(cluster), network_levels(cluster.pools[0], cluster.fabric)
    for other, level in ((1, 0), (8, 1), (256, 2)):
        assert distance(fabric, 0, other).latency_s == pytest.approx(levels[level].latency_s)
    # To another rail: over NVLink to the device beside that rail's NIC first.
    assert distance(fabric, 0, 9).latency_s == pytest.approx(levels[1].latency_s + levels[0].latency_s)


def test_routes_are_paths_of_the_graph() -> None:
    for name, nodes in (("dgx-h100", 2), ("trn2", 2), ("h100-pcie-8", 2)):
        fabric = fabric_of(small(name, nodes))
        ends = np.arange(fabric.num_devices)
        source, target = np.repeat(ends, len(ends)), np.tile(ends, len(ends))
        passed = routes(fabric, source, target)
        edge, down = passed.link // 2, passed.link % 2 == 1
        balance = np.zeros((len(source), fabric.num_vertices), dtype=int)
        np.add.at(balance, (passed.flow, np.where(down, fabric.head[edge], fabric.tail[edge])), 1)
        np.add.at(balance, (passed.flow, np.where(down, fabric.tail[edge], fabric.head[edge])), -1)
        expected = np.zeros_like(balance)
        np.add.at(expected, (np.arange(len(source)), source), 1)
        np.add.at(expected, (np.arange(len(source)), target), -1)
        assert (balance == expected).all()
        assert (fabric.capacity_bytes_per_s[edge] > 0).all()


def test_collectives_at_once_share_their_nics_and_leave_others_alone() -> None:
    fabric = fabric_of(load_cluster("dgx-h100", 64))
    inside = load_of(fabric, strided_groups(64, ((8, 1),)), "ring")
    across = load_of(fabric, strided_groups(64, ((8, 8),)), "ring")
    alone = fair_rates(fabric, across)[0]
    rates = fair_rates(fabric, joined([inside, across, across]))
    assert rates[:8] == pytest.approx(fair_rates(fabric, inside))
    assert rates[8:] == pytest.approx(np.full(16, alone / 2))


def test_a_lost_leaf_moves_its_rail_and_a_lost_spine_thins_out() -> None:
    fabric = fabric_of(load_cluster("dgx-h100", 512))
    whole = bisection(fabric).capacity_bytes_per_s
    groups = strided_groups(512, ((64, 8),))
    rate = fair_rates(fabric, load_of(fabric, groups, "ring")).min()
    lost = without(fabric, "leaf")
    assert bisection(lost).capacity_bytes_per_s == pytest.approx(whole * 7 / 8)
    assert fair_rates(lost, load_of(lost, groups, "ring")).min() < rate
    spines = fabric.switches[fabric.kind == fabric.kinds.index("spine")].sum()
    assert spines == 8  # 512 NICs over spines of 64 ports
    assert bisection(without(fabric, "spine")).capacity_bytes_per_s == pytest.approx(whole * 7 / 8)
    assert bisection(without_cable(fabric, "leaf")).capacity_bytes_per_s == pytest.approx(whole - 50e9)
    with pytest.raises(NotFound, match="no core"):
        without(fabric, "core")


def test_the_superpod_has_the_switches_of_its_reference_architecture() -> None:
    fabric = fabric_of(load_cluster("dgx-h100", 1024))
    found = {kind: int(fabric.switches[fabric.kind == index].sum()) for index, kind in enumerate(fabric.kinds)}
    assert (found["leaf"], found["spine"]) == (32, 16)


def test_tiers_of_a_topology_are_taken_node_by_node() -> None:
    cluster = small("dgx-h100", 6)
    leaf = NetworkTier(
        name="leaf", groups=((0, 2, 4, 5), (1, 3)), uplinks_per_group=(16, 16), link_bandwidth_bytes_per_s=50e9
    )
    fabric = fabric_of(cluster, [leaf])
    assert fabric.tiers[0].group_of_node.tolist() == [0, 1, 0, 1, 0, 0]
    assert distance(fabric, 0, 16).links < distance(fabric, 0, 8).links
    # 16 devices under the second leaf have 16 cables up; 32 under the first have 16 as well.
    near = np.flatnonzero(np.isin(np.arange(48) // 8, (1, 3)))
    far = np.setdiff1d(np.arange(48), near)
    assert minimum_cut(fabric, near, far).capacity_bytes_per_s == pytest.approx(16 * 50e9)


def test_16384_devices_fold_into_a_few_classes() -> None:
    from profiles.fabric.quotient import folded

    fabric = fabric_of(load_cluster("dgx-h100", 16_384))
    graph, _ = folded(fabric, np.zeros(fabric.num_vertices, dtype=np.int64))
    assert {data["kind"]: data["count"] for _, data in graph.nodes(data=True)} == {
        "device": 16_384, "scale_up": 2_048, "nic": 16_384, "leaf": 512, "spine": 8, "core": 1,
    }  # fmt: skip
    assert bisection(fabric).capacity_bytes_per_s == pytest.approx(8_192 * 50e9)


def test_what_cannot_be_cut_says_so() -> None:
    fabric = fabric_of(load_cluster("dgx-h100", 8))
    with pytest.raises(DocumentInvalid, match="without common devices"):
        minimum_cut(fabric, np.array([0, 1]), np.array([1, 2]))
