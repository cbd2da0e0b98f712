"""A hop between stages is priced by the networks that the pipeline really crosses."""

from __future__ import annotations

import numpy as np
import pytest

from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.stage_hop import stage_hop_s
from planner.predict.schedule.orders import build_order
from planner.predict.schedule.simulate import simulate
from planner.strategy.rows import StrategyRows
from planner.strategy.schedules import ScheduleName
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.reliefs import RELIEFS

SIZE = np.array([64e6])


@pytest.fixture(scope="module")
def nodes() -> Hardware:
    """Eight nodes of eight devices."""
    return hardware_of(load_cluster("dgx-h100", 64), "bf16")


def priced(hardware: Hardware, strategy: Strategy, stride: int) -> float:
    rows = StrategyRows.of([strategy], RELIEFS)
    return float(stage_hop_s(hardware, rows, SIZE, np.array([stride], dtype=np.int64))[0])


def single(hardware: Hardware, distance: int) -> float:
    return float(hardware.collective_s("send_recv", SIZE, np.array([2.0]), np.array([float(distance)]))[0])


def test_a_pipeline_inside_the_node_has_fast_hops(nodes: Hardware) -> None:
    assert priced(nodes, Strategy(pp=4, schedule="gpipe", num_microbatches=4), 2) == single(nodes, 2)


def test_whole_nodes_as_stages_have_slow_hops(nodes: Hardware) -> None:
    assert priced(nodes, Strategy(pp=8, num_microbatches=8), 8) == single(nodes, 8)


def test_hops_of_both_kinds_count_in_proportion(nodes: Hardware) -> None:
    """16 stages of 4 devices: 7 of 15 hops leave the node."""
    mean = (8 * single(nodes, 4) + 7 * single(nodes, 8)) / 15
    assert priced(nodes, Strategy(pp=16, schedule="gpipe", num_microbatches=16), 4) == pytest.approx(mean, rel=1e-12)


def test_without_a_pipeline_there_is_no_hop(nodes: Hardware) -> None:
    assert priced(nodes, Strategy(tp=8), 64) == 0.0


@pytest.mark.parametrize(("schedule", "within"), [("gpipe", 1e-9), ("1f1b", 1e-2), ("zb_h1", 1e-2)])
def test_one_price_stands_for_uneven_hops(nodes: Hardware, schedule: ScheduleName, within: float) -> None:
    """Against the simulator: 8 stages, 4 a node, a slow hop of 5 % of a stage."""
    slow, fast = single(nodes, 8), single(nodes, 2)
    stage_s = slow / 0.05
    hops = [slow if after == 3 else fast for after in range(7)]
    order = build_order(schedule, 8, 1, 32, 0)
    price = priced(nodes, Strategy(pp=8, schedule=schedule, num_microbatches=32), 2)

    def makespan(send_s: list[float] | float) -> float:
        timeline = simulate(order, stage_s / 3, stage_s * 2 / 3, stage_s / 3, send_s=send_s)
        return timeline.makespan_s

    assert makespan(price) == pytest.approx(makespan(hops), rel=within)
