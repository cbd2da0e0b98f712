"""Accelerate's plans through DeepSpeed are DeepSpeed's, its others FSDP2's; bounds of memory are below both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.backends.accelerate.physics import ACCELERATE
from planner.backends.deepspeed.physics import DEEPSPEED
from planner.model.load import load_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.physics.physics import Physics
from planner.question.problem import Workload
from planner.search.bound import BoundTerms
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster

PLAIN = Strategy(dp_shard=16, num_microbatches=4, overlap_grad_reduce=False, overlap_param_gather=False)
SHARDED = [
    replace(PLAIN, zero_stage=zero, optimizer_offload=offload) for zero in (1, 2, 3) for offload in (False, True)
]
FSDP = replace(ACCELERATE, deepspeed_where_needed=False, zero_all_reduces=False, reduce_bucket_elements=0.0)


def costs(traits: Physics) -> tuple[CostModel, StrategyRows]:
    hardware = hardware_of(load_cluster("dgx-h100", num_devices=16), "bf16", physics=traits)
    workload = Workload(global_batch_size=64, sequence_length=2048)
    return CostModel(load_model("llama-3.1-8b"), workload, hardware, (Relief(),)), StrategyRows.of(SHARDED, (Relief(),))


def rows(traits: Physics) -> RowCost:
    model, strategies = costs(traits)
    return model.rows(strategies)


@pytest.mark.parametrize(
    "at", range(len(SHARDED)), ids=lambda at: f"{SHARDED[at].zero_stage} {SHARDED[at].optimizer_offload}"
)
def test_a_plan_is_that_of_the_library_which_shards_it(at: int) -> None:
    through = SHARDED[at].zero_stage == 1 or SHARDED[at].optimizer_offload
    own, theirs = rows(ACCELERATE), rows(DEEPSPEED if through else FSDP)
    for mine, other in (
        (own.fixed_bytes, theirs.fixed_bytes),
        (own.dense_state.total, theirs.dense_state.total),
        (own.dense_state.host, theirs.dense_state.host),
        (own.layer_forward_s[:, 0], theirs.layer_forward_s[:, 0]),
        (own.layer_backward_s[:, 0], theirs.layer_backward_s[:, 0]),
    ):
        assert mine[at] == pytest.approx(other[at])


@pytest.mark.parametrize("traits", [ACCELERATE, DEEPSPEED, FSDP], ids=["accelerate", "deepspeed", "fsdp"])
def test_the_leanest_states_are_below_all(traits: Physics) -> None:
    model, strategies = costs(traits)
    cost = model.rows(strategies)
    leanest, _ = BoundTerms(model, strategies, cost).leanest_state_bytes()
    assert (leanest <= cost.dense_state.total).all()
    assert np.ptp(leanest) == 0.0
