"""What a pipeline holds beyond its schedule: bubbles of one loop over all stages, one more chunk of warm-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.load import load_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel
from planner.predict.physics.physics import TUNED, Physics
from planner.predict.stage_memory import in_flight
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster

LOOP = replace(TUNED, bubbles_keep=True)
WARM = replace(TUNED, overlap_warmup_chunk=True)
GPIPE = Strategy(pp=4, dp_shard=4, num_microbatches=8, schedule="gpipe")
LOOPED = Strategy(pp=4, vpp=2, dp_shard=4, ep=4, num_microbatches=8, schedule="interleaved", overlap_ep=True)


def flights(strategy: Strategy, traits: Physics) -> list[float]:
    hardware = hardware_of(load_cluster("dgx-h100", num_devices=16), "bf16", physics=traits)
    reliefs = (Relief(),)
    workload = Workload(global_batch_size=32, sequence_length=2048)
    costs = CostModel(load_model("mixtral-8x7b"), workload, hardware, reliefs)
    rows = StrategyRows.of([strategy], reliefs)
    held: list[float] = in_flight(rows, costs.rows(rows), strategy.pp)[0].tolist()
    return held


def test_iterations_without_a_microbatch_keep_as_much() -> None:
    assert flights(GPIPE, LOOP) == [8 + 3] * 4
    assert flights(GPIPE, TUNED) == [8] * 4
    plain = replace(GPIPE, schedule="1f1b")
    assert flights(plain, LOOP) == flights(plain, TUNED)


def test_expert_overlap_holds_one_more_chunk() -> None:
    usual = np.array(flights(LOOPED, TUNED))
    assert (np.array(flights(LOOPED, WARM)) == usual + 0.5).all()
    assert flights(replace(LOOPED, overlap_ep=False), WARM) == usual.tolist()


def test_never_more_than_all_chunks_of_all_microbatches() -> None:
    few = replace(LOOPED, num_microbatches=4)
    assert max(flights(few, WARM)) <= 4


BREADTH = replace(GPIPE, schedule="looped_bfs", vpp=2)


def held_bytes(strategy: Strategy, traits: Physics) -> tuple[float, float]:
    """What every stage holds whatever its layers, and a micro-batch's hidden states."""
    hardware = hardware_of(load_cluster("dgx-h100", num_devices=16), "bf16", physics=traits)
    workload = Workload(global_batch_size=32, sequence_length=2048)
    costs = CostModel(load_model("mixtral-8x7b"), workload, hardware, (Relief(),))
    cost = costs.rows(StrategyRows.of([strategy], (Relief(),)))
    return float(cost.fixed_bytes[0]), float(cost.fixed.entry[0])


def test_a_repeat_adds_its_bubble_once() -> None:
    assert flights(BREADTH, LOOP) == [8 + 3 / 2] * 4
    assert flights(BREADTH, TUNED) == [8] * 4


def test_rounds_store_all_microbatches() -> None:
    stores = replace(TUNED, stores_rounds=True)
    held, entry = held_bytes(BREADTH, stores)
    assert entry == 2048 * 4096 * 2
    assert held == held_bytes(BREADTH, TUNED)[0] + 8 * entry
    for plain in (GPIPE, replace(BREADTH, num_microbatches=4)):
        assert held_bytes(plain, stores) == held_bytes(plain, TUNED)
