"""Parameters of ZeRO-3 are gathered beside compute, not beside what holds the same link."""

from __future__ import annotations

import pytest

from planner.model.builtin import builtin_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.layer_traffic import busy_link_s
from planner.predict.cost.row_cost import CostModel
from planner.predict.physics.physics import TUNED
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from solver.arrays import Array

HARDWARE = hardware_of(load_cluster("dgx-h100", 64), "bf16", physics=TUNED)
WORKLOAD = Workload(global_batch_size=256, sequence_length=4096, precision="bf16")


def busy_s(strategy: Strategy) -> Array:
    """One pass of a layer whose tp, cp and ep show 2, 4 and 8 seconds, forward and backward together."""
    reliefs = (relief_of(strategy),)
    rows = StrategyRows.of([strategy], reliefs)
    cost = CostModel(builtin_model("mixtral-8x7b"), WORKLOAD, HARDWARE, reliefs).rows(rows)
    seconds = tuple(each + cost.hop_s * 0.0 for each in (2.0, 4.0, 8.0))
    return busy_link_s(rows, seconds, cost.dense_parallel, HARDWARE)  # type: ignore[arg-type]  # three of them


@pytest.mark.parametrize(
    ("strategy", "held_s"),
    [
        (Strategy(tp=2, sp=True, dp_shard=32, ep=8, etp=1, zero_stage=3), 0.0),
        (Strategy(tp=2, sp=True, dp_shard=32, ep=8, etp=2, zero_stage=3), 4.0),
        (Strategy(tp=8, sp=True, cp=2, cp_kind="ring", dp_shard=4, zero_stage=3), 2.0),
        (Strategy(tp=2, sp=True, dp_shard=4, ep=4, pp=8, num_microbatches=8, zero_stage=3), 7.0),
    ],
    ids=["experts in a node, shards over nodes", "experts over nodes too", "cp over nodes", "all in a node"],
)
def test_exchanges_hold_the_link_of_the_shards(strategy: Strategy, held_s: float) -> None:
    assert busy_s(strategy).tolist() == [held_s]
