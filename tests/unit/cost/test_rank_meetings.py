"""Ranks that meet on the host, and transfers that block it, cost what their number says, and only over nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.model.operators import embedding_operators, head_operators, layer_operators
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.launches import host_s
from planner.predict.cost.layer import launch_floor_s, layer_kind
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.layer_keys import LayerKeys
from planner.predict.physics.physics import Physics
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.reliefs import RELIEFS

MEETING = Physics("meeting", launch_s=10e-6, meeting_s=1e-3)
LLAMA = builtin_model("llama-3.1-8b")


def h100(devices: int, traits: Physics = MEETING) -> Hardware:
    return replace(hardware_of(load_cluster("dgx-h100", devices), "bf16"), physics=traits)


def keys_of(tp: int, sp: int) -> LayerKeys:
    one = np.ones(1)
    return LayerKeys(
        tp=tp * one, sp=sp * one, cp=one, ring=0 * one, ep=one, etp=one, micro_batch_size=one, overlap_tp=0 * one,
        overlap_ep=0 * one, sequence_length=2048,
    )  # fmt: skip


@pytest.mark.parametrize(("sp", "forward", "backward"), [(1, 4, 6), (0, 2, 2)])
def test_a_layers_collectives_wait_for_every_member(sp: int, forward: int, backward: int) -> None:
    """Under sp: two gathers and two scatters each way, and the two saved inputs gathered again."""
    keys, hardware, operators = keys_of(8, sp), h100(16), layer_operators(LLAMA, 0)
    floor, launches = launch_floor_s(operators, keys, hardware), host_s(operators, keys, MEETING)
    smallest_s = float(hardware.collective_s("all_gather", np.ones(1), np.full(1, 8.0), np.ones(1))[0])
    assert floor[0] - launches[0] == pytest.approx(forward * (8 * 1e-3 + smallest_s))
    assert floor[1] - launches[1] == pytest.approx(backward * (8 * 1e-3 + smallest_s))


def test_the_ends_meet_too() -> None:
    """Table: a scatter and a gather.  Head: a gather, then a scatter and a gather; its loss sums three times."""
    keys, hardware = keys_of(2, 1), h100(16)
    each_s = 2 * 1e-3 + float(hardware.collective_s("all_gather", np.ones(1), np.full(1, 2.0), np.ones(1))[0])
    for operators, forward, backward in ((embedding_operators(LLAMA), 1, 1), (head_operators(LLAMA), 4, 2)):
        floor, launches = launch_floor_s(operators, keys, hardware), host_s(operators, keys, MEETING)
        assert floor[0] - launches[0] == pytest.approx(forward * each_s)
        assert floor[1] - launches[1] == pytest.approx(backward * each_s)


@pytest.mark.parametrize(("devices", "tp"), [(8, 8), (16, 1)])
def test_nobody_meets_inside_one_node_or_alone(devices: int, tp: int) -> None:
    keys, operators = keys_of(tp, 1), layer_operators(LLAMA, 0)
    floor, launches = launch_floor_s(operators, keys, h100(devices)), host_s(operators, keys, MEETING)
    assert floor[0] == pytest.approx(launches[0])
    assert floor[1] == pytest.approx(launches[1])


def test_bytes_do_not_matter_while_the_host_is_the_slower_one() -> None:
    kind = layer_kind(layer_operators(LLAMA, 0), keys_of(8, 1), h100(16))
    assert kind.forward_s == kind.host_forward_s
    assert kind.host_forward_s > kind.sums.forward_s + kind.sums.communication_forward_s


def cost_of(traits: Physics, devices: int, strategy: Strategy) -> RowCost:
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=2048)
    rows = StrategyRows.of([strategy], RELIEFS)
    return CostModel(LLAMA, workload, h100(devices, traits), RELIEFS).rows(rows)


@pytest.mark.parametrize(("stages", "transfers"), [(1, 0), (2, 2), (4, 4), (8, 4)])
def test_a_stage_stalls_on_each_of_its_transfers(stages: int, transfers: int) -> None:
    """Two stages have one neighbour each; a stage between two others receives and sends both ways."""
    strategy = Strategy(pp=stages, dp_shard=16 // stages, num_microbatches=8)
    stalling = Physics("stalling", transfer_stall_s=0.25)
    assert cost_of(stalling, 16, strategy).stage_host_s[0] == transfers * 0.25


def test_transfers_inside_one_node_do_not_stall() -> None:
    stalling = Physics("stalling", transfer_stall_s=0.25)
    assert cost_of(stalling, 8, Strategy(pp=8, num_microbatches=8)).stage_host_s[0] == 0.0
