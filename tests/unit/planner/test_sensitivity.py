from __future__ import annotations

import pytest

from planner.answers.sensitivity import LEVERS, sensitivity
from planner.errors import DocumentInvalid
from planner.question.problem import Problem
from planner.strategy.strategy import Strategy
from profiles.cluster import Pool
from tests.plan_factory import make_plan

INTERLEAVED = Strategy(
    pp=2, vpp=2, dp_shard=4, schedule="interleaved", microbatch_group_size=2, num_microbatches=8, zero_stage=1
)


def pool(problem: Problem) -> Pool:
    return problem.cluster.pools[0]


def test_each_lever_scales_one_input_and_nothing_else() -> None:
    problem = make_plan(INTERLEAVED).problem
    scaled = {name: scale(problem, 0.5) for name, scale in LEVERS.items()}
    assert pool(scaled["compute_rate"]).device.peak_flops_per_s == {"bf16": 494.5e12, "fp8": 989.5e12}
    assert pool(scaled["scale_up_bandwidth"]).scale_up.bandwidth_bytes_per_s == 225e9
    assert pool(scaled["nic_bandwidth"]).nic_bandwidth_bytes_per_s == 25e9
    assert pool(scaled["memory_capacity"]).device.memory_bytes == 40 * 2**30
    for name, scale in LEVERS.items():
        assert scaled[name].problem_id != problem.problem_id
        assert scale(scaled[name], 2.0) == problem, f"{name} is undone by the inverse"


def test_a_batch_moves_by_whole_groups_of_micro_batches() -> None:
    result = sensitivity(make_plan(INTERLEAVED), (-0.2, 0.2), replan=False)
    changes = [point.change for point in result.points if point.lever == "global_batch_size"]
    assert changes == [-0.25, 0.25], "two of eight micro-batches: the interleaving group"


def test_a_single_micro_batch_cannot_shrink() -> None:
    result = sensitivity(make_plan(Strategy(dp_shard=8, num_microbatches=1)), (-0.5, 0.5), replan=False)
    assert [point.change for point in result.points if point.lever == "global_batch_size"] == [1.0]


def test_without_replanning_nothing_is_said_about_the_best() -> None:
    calls: list[tuple[int, int]] = []
    result = sensitivity(
        make_plan(INTERLEAVED), (0.1,), replan=False, progress=lambda done, total: calls.append((done, total))
    )
    assert {point.stays_best for point in result.points} == {None}
    assert calls == [(done, len(result.points)) for done in range(1, len(result.points) + 1)]


@pytest.mark.parametrize("change", [0.0, -1.0, -2.0, float("nan"), float("inf")])
def test_a_change_that_makes_no_input_is_refused(change: float) -> None:
    with pytest.raises(DocumentInvalid, match="makes no input"):
        sensitivity(make_plan(INTERLEAVED), (change,), replan=False)
