"""Where the overlap of tensor-parallel collectives that a strategy asks for does not happen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.backends.registry import physics_by_name
from planner.model.load import load_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel
from planner.predict.physics.physics import TUNED, Physics
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster

WORKLOAD = Workload(global_batch_size=64, sequence_length=4096)
SPLIT = Strategy(tp=4, sp=True, dp_shard=8, ep=8, num_microbatches=8, overlap_tp=True)
CORE = replace(physics_by_name()["megatron-core"], launch_s=0.0, call_s=0.0, each_expert_s=0.0)
"""Without its host, which may be the longer part of a layer."""


def layer_s(model: str, cluster: str, strategy: Strategy, traits: Physics) -> float:
    hardware = hardware_of(load_cluster(cluster, num_devices=32), "bf16", physics=traits)
    costs = CostModel(load_model(model), WORKLOAD, hardware, (Relief(),))
    rows = StrategyRows.of([strategy], (Relief(),))
    return float(costs.rows(rows).layer_s.sum())


def test_latent_attention_switches_it_off_for_the_whole_model() -> None:
    plain = replace(SPLIT, overlap_tp=False)
    assert layer_s("deepseek-v3", "dgx-h100", SPLIT, CORE) == layer_s("deepseek-v3", "dgx-h100", plain, TUNED)
    assert layer_s("deepseek-v3", "dgx-h100", SPLIT, TUNED) < layer_s("deepseek-v3", "dgx-h100", plain, TUNED)


@pytest.mark.parametrize(("cluster", "excluded"), [("dgx-h100", True), ("dgx-b200", False)])
def test_expert_overlap_excludes_it_before_blackwell(cluster: str, excluded: bool) -> None:
    both = replace(SPLIT, overlap_ep=True)
    seconds = layer_s("mixtral-8x7b", cluster, both, CORE)
    alone = layer_s("mixtral-8x7b", cluster, replace(both, overlap_tp=False), TUNED)
    assert seconds == (alone if excluded else layer_s("mixtral-8x7b", cluster, both, TUNED))
    assert layer_s("mixtral-8x7b", cluster, SPLIT, CORE) == layer_s("mixtral-8x7b", cluster, SPLIT, TUNED)
