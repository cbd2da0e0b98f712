"""The model's ends pay for their parameters: ZeRO traffic, copies of the token table."""

from __future__ import annotations

import pytest

from planner.model.builtin import builtin_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.reliefs import RELIEFS


def cost_of(model: str, strategy: Strategy, devices: int = 64) -> RowCost:
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096)
    hardware = hardware_of(load_cluster("dgx-h100", devices), workload.precision)
    return CostModel(builtin_model(model), workload, hardware, RELIEFS).rows(StrategyRows.of([strategy], RELIEFS))


def test_zero_3_gathers_and_reduces_the_ends_too() -> None:
    plain = cost_of("llama-3.1-8b", Strategy(dp_shard=64, zero_stage=1))
    sharded = cost_of("llama-3.1-8b", Strategy(dp_shard=64, zero_stage=3))
    # Nothing but the look-up runs beside the embedding's traffic: nearly all of it shows.
    table_bytes = 128256 * 4096 * (2 + 2 + 4)
    assert float((sharded.embedding_s - plain.embedding_s)[0]) > 0.9 * table_bytes * 63 / 64 / 450e9
    assert float((sharded.head_s - plain.head_s)[0]) > 0.0


@pytest.mark.parametrize(("model", "tables"), [("gemma-2-27b", 1), ("deepseek-v3", 1), ("llama-3.1-8b", 0)])
def test_the_heads_stage_holds_a_copy_of_the_token_table(model: str, tables: int) -> None:
    """Tied head, multi-token prediction, neither."""
    spec = builtin_model(model)
    alone = cost_of(model, Strategy(dp_shard=8), 8).head_dense[0]
    piped = cost_of(model, Strategy(pp=2, dp_shard=4, num_microbatches=2), 8).head_dense[0]
    assert piped - alone == tables * spec.vocab_size * spec.hidden_size


def test_two_copies_are_reduced_across_the_pipeline() -> None:
    across = cost_of("gemma-2-27b", Strategy(pp=2, dp_shard=32, num_microbatches=2)).table_reduce_s[0]
    spec = builtin_model("gemma-2-27b")
    assert across == pytest.approx(spec.vocab_size * spec.hidden_size * 4 / (0.85 * 50e9), rel=1e-3)
    assert cost_of("gemma-2-27b", Strategy(dp_shard=64)).table_reduce_s[0] == 0.0
    assert cost_of("llama-3.1-8b", Strategy(pp=2, dp_shard=32, num_microbatches=2)).table_reduce_s[0] == 0.0


@pytest.mark.parametrize("zero", [1, 3])
def test_overlapping_the_expert_exchange_is_never_slower(zero: int) -> None:
    def step_s(overlap: bool) -> float:
        strategy = Strategy(ep=8, dp_shard=64, zero_stage=zero, overlap_ep=overlap)
        workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096)
        hardware = hardware_of(load_cluster("dgx-h100", 64), workload.precision)
        costs = CostModel(builtin_model("qwen3-30b-a3b"), workload, hardware, RELIEFS)
        cost = costs.rows(StrategyRows.of([strategy], RELIEFS))
        dense = cost.layer_dense @ costs.kind_counts + cost.embedding_dense + cost.head_dense
        tails = costs.tail_parts_s(cost, dense, cost.layer_expert @ costs.kind_counts)
        return float((cost.layer_s @ costs.kind_counts + tails[0] + tails[1])[0])

    assert step_s(True) <= step_s(False)


def test_dense_and_expert_traffic_share_one_window() -> None:
    cost = cost_of("qwen3-30b-a3b", Strategy(ep=8, dp_shard=64, zero_stage=1))
    assert 0.0 < cost.dense_window_share[0] < 1.0
    assert cost_of("llama-3.1-8b", Strategy(dp_shard=64)).dense_window_share[0] == 1.0


def test_recompute_of_the_feed_forward_repeats_its_reduction() -> None:
    def relief_s(tp: int, overlap: bool) -> float:
        strategy = Strategy(
            tp=tp,
            sp=tp > 1,
            dp_shard=8 // tp,
            overlap_tp=overlap,
            recompute="selective",
            recompute_modules=("norm", "mlp"),
        )
        return float(cost_of("llama-3.1-8b", strategy, 8).relief_s[0, 0])

    assert relief_s(8, overlap=False) > relief_s(8, overlap=True)
