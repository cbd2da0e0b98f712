"""How much less a dispatcher sends that crosses each border of the network once a token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.predict.collective import distinct_fraction
from planner.predict.cost.hardware import hardware_of
from planner.predict.physics.physics import Physics
from profiles.catalogue import load_cluster
from profiles.scaling import scale_cluster

SIZE, STRIDE = np.array([1e8]), np.array([1.0])


@pytest.mark.parametrize(("copies", "parts", "expected"), [(1, 8, 1.0), (2, 2, 0.75), (8, 8, 8 * (1 - 0.875**8) / 8)])
def test_distinct_parts_by_hand(copies: float, parts: float, expected: float) -> None:
    assert distinct_fraction(copies, np.array([parts])) == pytest.approx([expected])


def test_once_a_node_is_faster_only_where_experts_share_nodes() -> None:
    cluster = scale_cluster(load_cluster("dgx-h100"), 64)
    each = hardware_of(cluster, "bf16")
    once = replace(each, physics=Physics(dispatch="node"))
    group = np.array([64.0])
    assert once.expert_exchange_s(SIZE, group, STRIDE, 8.0) < 0.9 * each.expert_exchange_s(SIZE, group, STRIDE, 8.0)
    single = once.expert_exchange_s(SIZE, group, STRIDE, 1.0)
    assert single == pytest.approx(each.expert_exchange_s(SIZE, group, STRIDE, 1.0))


def test_a_group_of_one_costs_nothing() -> None:
    once = replace(hardware_of(load_cluster("dgx-h100"), "bf16"), physics=Physics(dispatch="node"))
    assert not once.expert_exchange_s(SIZE, np.array([1.0]), STRIDE, 8.0).any()
