"""What a dispatcher sends that crosses each border of the network once a token: by hand, and DeepEP's own table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.model.operators import layer_operators
from planner.predict.cost.expert_exchange import dispatch_s, dispatch_share
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.launches import host_s
from planner.predict.cost.layer import operator_sum
from planner.predict.cost.payload import dispatched_fraction, exchanges
from planner.predict.distinct_parts import Routing, distinct_parts, routing_of
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys
from planner.predict.physics.physics import Physics
from planner.question.routing import EVEN
from planner.strategy.strategy import DISPATCHERS, Dispatcher
from profiles.catalogue import load_cluster
from profiles.scaling import scale_cluster

SIZE, STRIDE = np.array([1e8]), np.array([1.0])
TOP_8, LIMITED = Routing(8.0), Routing(8.0, 8, 4)


@pytest.mark.parametrize(("draws", "parts", "expected"), [(1, 8, 1.0), (2, 2, 1.5), (8, 8, 8 * (1 - 0.875**8))])
def test_parts_of_free_routing_by_hand(draws: float, parts: float, expected: float) -> None:
    assert distinct_parts(Routing(draws), np.array([parts])) == pytest.approx([expected])


def test_parts_of_group_limited_routing_by_hand() -> None:
    """4 of 8 groups.  A part of one group: 4 / 8 of them are chosen, each missed by (3/4)^8.  Parts of two groups: of
    C(8, 4) = 70 choices 40 take one of the two (missed by (3/4)^8) and 15 both (missed by (1/2)^8).  One part: 1.  A
    group in four parts: 16 parts hold the chosen ones."""
    one, two = 1 - 0.75**8, 1 - 0.5**8
    found = distinct_parts(LIMITED, np.array([8.0, 4.0, 1.0, 32.0]))
    expected = [8 * 0.5 * one, 4 * (40 / 70 * one + 15 / 70 * two), 1.0, 16 * (1 - (15 / 16) ** 8)]
    assert found == pytest.approx(expected)


def test_limited_routing_never_reaches_more_than_its_groups_nor_more_than_free_routing() -> None:
    parts = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0])
    limited, free = distinct_parts(LIMITED, parts), distinct_parts(TOP_8, parts)
    assert (limited <= free + 1e-9).all()
    assert limited[3] <= 4.0 < free[3]
    assert (np.diff(limited) >= 0).all()


def _h800(devices: int, physics: Physics, precision: str = "bf16") -> Hardware:
    return replace(hardware_of(scale_cluster(load_cluster("dgx-h800"), devices), precision), physics=physics)


@pytest.mark.parametrize(
    ("devices", "groups", "gigabytes_per_s"),
    [(16, 2, 43.0), (32, 4, 57.5), (64, 4, 50.5)],
    ids=["ep16", "ep32", "ep64"],
)
def test_deep_ep_table_on_h800(devices: int, groups: int, gigabytes_per_s: float) -> None:
    """DeepEP's table counts a token once for each node that it reaches, its own included (tests/test_internode.py):
    time = T b D(nodes) / bandwidth.  Groups: as many as nodes, of which at most 4 are chosen.  Over two nodes NVLink is
    the slower part, of which the planner takes a little more of the line than DeepEP reaches: 13 % too fast."""
    levels, nodes = _h800(devices, Physics()).levels, devices // 8
    routing = Routing(8.0, nodes, groups)
    token_bytes = np.array([4096 * 7168 * 2.0])
    size = np.array([float(devices)])
    published_s = token_bytes * distinct_parts(routing, np.array([float(nodes)])) / (gigabytes_per_s * 1e9)
    assert dispatch_s(token_bytes, size, STRIDE, levels, routing) == pytest.approx(published_s, rel=0.14)


def test_two_levels_by_hand() -> None:
    """64 H800: 5.25 of 8 nodes, 7/8 of the copies leave the node, at 0.88 of 50 GB/s; inside, 7.56 devices of 64, 7/8
    of them not the one that landed, at 0.78 * 0.9 of 200 GB/s: less.  Latencies: log2(8) each level, and the base."""
    levels = _h800(64, Physics()).levels
    outer_s = 1e8 * 8 * (1 - 0.875**8) * 7 / 8 / (0.88 * 50e9)
    inner_s = 1e8 * 64 * (1 - (63 / 64) ** 8) * 7 / 8 / (0.78 * 0.9 * 200e9)
    assert inner_s < outer_s
    found = dispatch_s(SIZE, np.array([64.0]), STRIDE, levels, TOP_8)
    latency_s = 3 * sum(level.latency_s for level in levels[:2]) + 6e-6
    assert found == pytest.approx([outer_s + latency_s])


def test_once_a_node_is_faster_where_experts_share_nodes() -> None:
    each, once = _h800(64, Physics()), _h800(64, Physics(dispatch="node"))
    group = np.array([64.0])
    assert once.expert_exchange_s(SIZE, group, STRIDE, TOP_8) < 0.9 * each.expert_exchange_s(SIZE, group, STRIDE, TOP_8)
    assert once.expert_exchange_s(SIZE, group, STRIDE, LIMITED) < once.expert_exchange_s(SIZE, group, STRIDE, TOP_8)
    # Groups of experts change nothing where a token is sent once for each of its experts.
    assert each.expert_exchange_s(SIZE, group, STRIDE, LIMITED) == each.expert_exchange_s(SIZE, group, STRIDE, TOP_8)


def test_a_group_of_one_costs_nothing() -> None:
    once = _h800(8, Physics(dispatch="node"))
    assert not once.expert_exchange_s(SIZE, np.array([1.0]), STRIDE, TOP_8).any()


def test_a_dispatch_in_eight_bit_carries_a_byte_and_its_scales() -> None:
    """1 + 4 / 128 bytes instead of 2; only where matmuls run in 8 bit, and only one way of the two."""
    assert dispatched_fraction(narrow=True, eight_bit=True) == pytest.approx(1.03125 / 2)
    assert dispatched_fraction(narrow=True, eight_bit=False) == dispatched_fraction(narrow=False, eight_bit=True) == 1.0


def test_the_model_says_which_groups_a_token_may_reach() -> None:
    model = builtin_model("deepseek-v3")
    last = next(operator for operator in layer_operators(model, 1) if operator.name == "experts_down")
    assert routing_of(last) == Routing(8.0, 8, 4, 256)


def _keys(word: Dispatcher, ep: int, overlap: float = 0.0) -> LayerKeys:
    named = {"ep": ep, "overlap_ep": overlap, "dispatcher": DISPATCHERS.index(word)}
    columns = {name: np.array([float(named.get(name, name not in ("sp", "overlap_tp")))]) for name in KEY_COLUMNS}
    return LayerKeys(**columns, sequence_length=4096, routing=EVEN)


def _exchange_s(word: Dispatcher, ep: int, physics: Physics, overlap: float = 0.0) -> float:
    operators = layer_operators(builtin_model("deepseek-v3"), 1)
    return float(operator_sum(operators, _keys(word, ep, overlap), _h800(64, physics)).ep_s[0])


def test_a_key_that_is_sent_once_is_priced_as_a_back_end_that_does_so_by_itself() -> None:
    own, said, each = (
        _exchange_s("alltoall", 64, Physics(dispatch="node")),
        _exchange_s("deepep", 64, Physics()),
        _exchange_s("alltoall", 64, Physics()),
    )
    assert said == own
    assert said < 0.7 * each
    assert _exchange_s("hybridep", 64, Physics()) == said


def test_an_all_gather_is_priced_by_hand() -> None:
    """4,096 tokens of 7,168 elements from each of 8 ranks: 16 bit one way and fp32 the other, forward and backward."""
    hardware, whole = _h800(64, Physics()), 8 * 4096 * 7168 * 2.0
    eight, one = np.array([8.0]), np.ones(1)
    parts = [
        hardware.collective_s(operation, np.array([size]), eight, one)[0]
        for operation in ("all_gather", "reduce_scatter")
        for size in (whole, 2.0 * whole)
    ]
    assert _exchange_s("allgather", 8, Physics()) == pytest.approx(sum(parts))


def test_the_bill_counts_a_token_once_a_device_or_all_of_them() -> None:
    (down,) = [each for each in layer_operators(builtin_model("deepseek-v3"), 1) if each.name == "experts_down"]
    found: dict[str, list[tuple[Any, ...]]] = {
        word: [
            (one.axis, one.operation, float(one.size_bytes[0]), float((one.forward + one.backward)[0])) for one in sent
        ]
        for word in DISPATCHERS
        for sent in [exchanges(down, _keys(word, 64), narrow=False)]
    }
    token = 4096 * 7168 * 2.0
    assert found["alltoall"][0] == ("ep", "all_to_all", 8 * token, 4.0)
    reached = float(distinct_parts(LIMITED, np.array([64.0]))[0])
    assert found["deepep"][0] == ("ep", "all_to_all", pytest.approx(reached * token), 4.0)
    assert [each for each in found["allgather"] if each[3]] == [
        ("ep", "all_gather", 64 * token, 1.0),
        ("ep", "reduce_scatter", 128 * token, 1.0),
        ("ep", "reduce_scatter", 64 * token, 1.0),
        ("ep", "all_gather", 128 * token, 1.0),
    ]


def test_kernels_of_a_dispatcher_take_their_multiprocessors_from_what_they_overlap() -> None:
    """20 of 132 multiprocessors of Hopper: more than the 13 % that any overlap costs."""
    hidden, plain = (_exchange_s("deepep", 8, Physics(), overlap) for overlap in (1.0, 0.0))
    assert hidden == pytest.approx(20 / 132 * plain)
    hidden, plain = (_exchange_s("allgather", 4, Physics(), overlap) for overlap in (1.0, 0.0))
    assert hidden == pytest.approx(0.13 * plain)
    assert [round(dispatch_share(name), 3) for name in ("ampere", "hopper", "blackwell")] == [0.185, 0.152, 0.135]


def test_launches_follow_the_dispatcher_of_each_key() -> None:
    traits, operators = Physics(launch_s=1e-6), layer_operators(builtin_model("deepseek-v3"), 1)
    times = {word: host_s(operators, _keys(word, 8), traits)[0][0] for word in DISPATCHERS}
    assert times["alltoall"] - times["deepep"] == pytest.approx((23 + 6 - 12 - 3) * 1e-6)
    assert times["alltoall"] - times["allgather"] == pytest.approx((23 + 6 - 15 - 4) * 1e-6)
    assert times["hybridep"] == times["deepep"]
