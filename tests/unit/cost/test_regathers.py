"""Chunks that torch's pipelines drop and gather again: what their gathers take longer than the passes beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.backends.torchtitan.physics import TORCHTITAN_COMPILED
from planner.model.load import load_model
from planner.predict.candidate import Candidate, Split
from planner.predict.cost.hardware import hardware_of
from planner.question.problem import Problem, Workload
from planner.search.evaluate import evaluate_split
from planner.search.row_context import RowContext, strategy_context
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster

ROUNDS = 4
CHUNKED = Strategy(
    tp=4, pp=2, vpp=10, dp_shard=8, zero_stage=1, num_microbatches=2 * ROUNDS, schedule="interleaved",
    microbatch_group_size=2, overlap_grad_reduce=False, sp=True,
)  # fmt: skip


def context(strategy: Strategy, sequence_length: int, *, drops: bool = True) -> RowContext:
    problem = Problem(
        model=load_model("llama-3.1-70b"),
        cluster=load_cluster("dgx-h100", 64),
        workload=Workload(global_batch_size=strategy.global_batch_size, sequence_length=sequence_length),
    )
    physics = replace(TORCHTITAN_COMPILED, drops_chunks=drops)
    return strategy_context(problem, hardware_of(problem.cluster, "bf16", physics=physics), strategy)


def waits_s(strategy: Strategy, sequence_length: int) -> float:
    return float(context(strategy, sequence_length).cost.regather_s[0])


def test_short_passes_do_not_hide_a_gather() -> None:
    cost = context(CHUNKED, 128).cost
    uncovered_s = float(cost.uncovered_s[0])
    assert uncovered_s > 0
    assert float(cost.regather_s[0]) == pytest.approx((10 - 3) / (2 * 10) * uncovered_s)


def test_long_passes_do() -> None:
    assert waits_s(CHUNKED, 8192) == 0.0


@pytest.mark.parametrize(
    "strategy",
    [
        replace(CHUNKED, vpp=2),
        replace(CHUNKED, schedule="looped_bfs", microbatch_group_size=0),
        replace(CHUNKED, zero_stage=0),
    ],
)
def test_nothing_waits_where_no_chunk_is_dropped_or_sharded(strategy: Strategy) -> None:
    assert waits_s(strategy, 128) == 0.0


def test_every_microbatch_of_every_stage_waits() -> None:
    def step(drops: bool) -> Candidate:
        return evaluate_split(context(CHUNKED, 128, drops=drops), Split((4,) * CHUNKED.num_chunks, (0,) * CHUNKED.pp))

    kept, dropped = step(drops=False), step(drops=True)
    lost_s = waits_s(CHUNKED, 128)
    assert dropped.step_time_s >= kept.step_time_s + CHUNKED.num_microbatches * lost_s
    assert sum(dropped.breakdown_s.values()) == pytest.approx(dropped.step_time_s)
    assert dropped.breakdown_s["dp"] > kept.breakdown_s["dp"]
