"""A collective is never faster than the links that it crosses, and no worse network makes anything faster.

The bytes that must cross a link are counted device by device, without the planner's levels: who sits under which
switch, and what has to come in from outside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.predict.collective import Collective, collective_s, queued_latency_s
from planner.predict.cost.expert_exchange import dispatch_s
from planner.predict.distinct_parts import Routing
from profiles.catalogue import load_cluster
from profiles.cluster import FabricLevel, Pool
from profiles.levels import NetworkLevel, network_levels

RINGS: tuple[Collective, ...] = ("all_reduce", "all_gather", "reduce_scatter")
OPS: tuple[Collective, ...] = (*RINGS, "all_to_all", "send_recv")
ROUNDING = 1 - 1e-9
GB = 1e9


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes of eight behind tiers of switches."""

    nodes: int
    tiers: tuple[tuple[int, float], ...]
    nic: float = 50e9
    link: float = 450e9
    latency_s: float = 4e-6

    @property
    def pool(self) -> Pool:
        """The nodes."""
        pool = load_cluster("dgx-h100", 8 * self.nodes).pools[0]
        scale_up = pool.scale_up.model_copy(update={"bandwidth_bytes_per_s": self.link, "in_network_reduction": False})
        update = {"nic_bandwidth_bytes_per_s": self.nic, "nic_latency_s": self.latency_s, "scale_up": scale_up}
        return pool.model_copy(update=update)

    @property
    def levels(self) -> tuple[NetworkLevel, ...]:
        """As the cost model sees them."""
        fabric = [
            FabricLevel(name=f"tier{index}", num_nodes=nodes, oversubscription=ratio, latency_s=0.0)
            for index, (nodes, ratio) in enumerate(self.tiers)
        ]
        return network_levels(self.pool, tuple(fabric))


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """8 to 1,024 devices, up to three tiers, each of several of the tier below."""
    tiers, nodes = [], 1
    for _ in range(draw(st.integers(0, 3))):
        nodes *= draw(st.sampled_from([2, 2, 3, 4]))
        tiers.append((nodes, draw(st.sampled_from([1.0, 1.0, 1.5, 2.0, 7.0]))))
    whole = nodes * draw(st.sampled_from([1, 2, 3, 4]))
    return Network(min(whole, 128), tuple(tiers), draw(st.floats(1, 200)) * GB, draw(st.floats(10, 2000)) * GB)


@st.composite
def crossings(draw: st.DrawFn) -> tuple[Network, tuple[int, int]]:
    """A network, with size and stride of groups that tile its devices."""
    network = draw(networks())
    devices = 8 * network.nodes
    sizes = [size for size in range(2, devices + 1) if devices % size == 0]
    size = draw(st.sampled_from(sizes))
    strides = [stride for stride in range(1, devices // size + 1) if devices % (size * stride) == 0]
    return network, (size, draw(st.sampled_from(strides)))


def _seconds(op: Collective, size: float, group: tuple[int, int], levels: tuple[NetworkLevel, ...]) -> float:
    members, stride = (np.array([float(each)]) for each in group)
    return float(collective_s(op, np.array([size]), members, stride, levels)[0])


def line_rate_s(op: Collective, size: float, group: tuple[int, int], network: Network) -> float:
    """The longest that one link needs for what must cross it: NICs of a node, uplinks of every tier.

    Each device has its share of both.  The group that starts at device 0 is looked at.
    """
    members = np.arange(group[0]) * group[1]
    worst_s, rate = 0.0, network.nic
    for nodes, ratio in ((1, 1.0), *network.tiers):
        rate /= ratio
        under = members // (8 * nodes)
        counts = np.unique(under, return_counts=True)[1]
        if len(counts) == 1:
            break
        few = counts.min()
        outside = size * (1 - few / len(members)) / few
        if op == "all_to_all":
            outside = size * (len(members) - few) / len(members)
        worst_s = max(worst_s, outside * (2 if op == "all_reduce" else 1) / rate)
    return worst_s


@given(crossings(), st.sampled_from([*RINGS, "all_to_all"]), st.floats(1e3, 1e11))
@example((Network(128, ((2, 1.0), (8, 1.0), (32, 1.0))), (128, 8)), "all_gather", 8 * GB)
@example((Network(128, ((2, 1.0), (4, 1.0), (16, 1.5)), link=2000 * GB), (1024, 1)), "all_reduce", 8 * GB)
def test_never_below_line_rate(crossing: tuple[Network, tuple[int, int]], op: Collective, size: float) -> None:
    network, group = crossing
    assert _seconds(op, size, group, network.levels) >= line_rate_s(op, size, group, network) * ROUNDING


def test_a_leaf_without_oversubscription_does_not_beat_the_wire() -> None:
    """128 nodes, an 8 GB gather with one member a node: 158.75 ms of line rate (was 149 ms with a leaf declared)."""
    plain, leaf = Network(128, ()), Network(128, ((2, 1.0),))
    assert line_rate_s("all_gather", 8 * GB, (128, 8), leaf) == pytest.approx(0.15875)
    seconds = [_seconds("all_gather", 8 * GB, (128, 8), each.levels) for each in (plain, leaf)]
    assert seconds[1] == pytest.approx(seconds[0], rel=1e-12)
    assert seconds[0] > 0.187


@given(crossings(), st.sampled_from(OPS), st.floats(1e3, 1e11), st.integers(0, 2))
def test_tiers_that_take_nothing_away_change_nothing(
    crossing: tuple[Network, tuple[int, int]], op: Collective, size: float, kept: int
) -> None:
    """All switches non-blocking: how many of them are declared is only a matter of latency."""
    network, group = crossing
    even = replace(network, tiers=tuple((nodes, 1.0) for nodes, _ in network.tiers))
    fewer = replace(even, tiers=even.tiers[:kept])
    more_s, less_s = (_seconds(op, size, group, each.levels) for each in (even, fewer))
    assert more_s >= less_s * ROUNDING
    several = np.array([float(group[0])]), np.array([float(group[1])])
    assert queued_latency_s(*several, even.levels) >= queued_latency_s(*several, fewer.levels) * ROUNDING
    if op in {"all_gather", "reduce_scatter"}:
        assert more_s == pytest.approx(less_s, rel=1e-9)


WORSE = ("nic", "link", "latency", "tier0", "tier1", "tier2")


def worsened(network: Network, what: str, factor: float) -> Network:
    """The network with one thing ``factor`` times worse."""
    if what in {"nic", "link"}:
        return replace(network, **{what: getattr(network, what) / factor})
    if what == "latency":
        return replace(network, latency_s=network.latency_s * factor)
    at = int(what[-1])
    tiers = tuple((nodes, ratio * (factor if at == index else 1)) for index, (nodes, ratio) in enumerate(network.tiers))
    return replace(network, tiers=tiers)


@given(crossings(), st.sampled_from(OPS), st.floats(1e3, 1e11), st.sampled_from(WORSE), st.floats(1, 20))
def test_a_worse_network_never_takes_less_time(
    crossing: tuple[Network, tuple[int, int]], op: Collective, size: float, what: str, factor: float
) -> None:
    network, group = crossing
    before_s = _seconds(op, size, group, network.levels)
    after_s = _seconds(op, size, group, worsened(network, what, factor).levels)
    assert after_s >= before_s * ROUNDING


@given(networks(), st.sampled_from([2.0, 4.0, 8.0]), st.floats(1e3, 1e10))
def test_copies_do_not_merge_in_a_switch(network: Network, copies: float, size: float) -> None:
    """A token for several experts goes to each node that has one, under whichever switch those stand."""
    devices = np.array([8.0 * network.nodes])
    one = np.ones(1)
    plain = replace(network, tiers=())
    even = replace(network, tiers=tuple((nodes, 1.0) for nodes, _ in network.tiers))
    seconds = [
        float(dispatch_s(size * one, devices, one, each.levels, Routing(top_k=copies))[0]) for each in (plain, even)
    ]
    assert seconds[1] >= seconds[0] * ROUNDING
