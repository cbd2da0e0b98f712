"""Samples with unequal numbers of images: what is said, what the fullest rank has, what a plan makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from planner.cli.items_flag import items_of
from planner.errors import DocumentInvalid
from planner.model.builtin import builtin_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.cost.uneven_items import fullest_items, item_spread
from planner.predict.training_flops import step_flops
from planner.question.agreement import contradictions
from planner.question.item_counts import ItemCounts
from planner.question.problem import Problem, Workload
from planner.search.towers.compose import can_feed, can_share
from planner.search.towers.tower_cost import TowerLayout
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from tests.plan_factory import make_cluster, make_model

MODEL = builtin_model("qwen2.5-vl-7b")


def _workload(**said: Any) -> Workload:
    return Workload.model_validate({"global_batch_size": 64, "sequence_length": 4096, **said})


def _cost(workload: Workload, *strategies: Strategy) -> RowCost:
    problem = Problem(model=MODEL, cluster=make_cluster(), workload=workload)
    hardware = hardware_of(problem.cluster, workload.precision)
    rows = StrategyRows.of(strategies, [Relief()])
    return CostModel(MODEL, workload, hardware, [Relief()]).rows(rows)


@pytest.mark.parametrize(
    ("text", "mean", "deviation", "most"),
    [
        ("mean:4", 4, 2, float("inf")),
        ("0:1+2:1", 1, 1, 2),
        ("p0:1+p100:3", 2, 3**-0.5, 3),
        ("p50:2+p60:2", 2, 0, 2),
    ],
)
def test_moments(text: str, mean: float, deviation: float, most: float) -> None:
    counts = ItemCounts.model_validate(text)
    assert counts.expected == pytest.approx(mean)
    assert counts.variation * counts.expected == pytest.approx(deviation)
    assert counts.most == most
    assert ItemCounts.model_validate_json(counts.model_dump_json()) == counts


def test_percentiles_agree_with_samples_drawn_from_them() -> None:
    counts = ItemCounts.model_validate("p5:0+p50:1+p90:4+p99:9")
    drawn = np.interp(np.random.default_rng(7).random(400_000) * 100, [5, 50, 90, 99], [0, 1, 4, 9])
    assert counts.expected == pytest.approx(drawn.mean(), rel=0.01)
    assert counts.expected * counts.variation == pytest.approx(drawn.std(), rel=0.01)


@pytest.mark.parametrize(
    "text", ["x", "mean:0", "mean:x", "p50:1", "p50:8+p99:1", "p50:1+p50:2", "p-1:1+p5:2", "0:1", "1:-1", "mean:2+3:4"]
)
def test_what_is_no_distribution_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        ItemCounts.model_validate(text)


def test_a_flag_is_a_number_a_distribution_or_a_file(tmp_path: Path) -> None:
    names = "--images", "images_per_sample", "image_counts"
    file = tmp_path / "counts.txt"
    file.write_text("0\n2 3\n2\n", encoding="utf-8")
    assert items_of(None, *names) == {}
    assert items_of("4", *names) == {"images_per_sample": 4}
    assert items_of("mean:2", *names) == {"image_counts": "mean:2"}
    assert items_of(f"file:{file}", *names) == {"image_counts": {"histogram": [(0.0, 1.0), (2.0, 4.0)]}}
    for wrong in ("-1", "many", f"file:{tmp_path}"):
        with pytest.raises(DocumentInvalid) as raised:
            items_of(wrong, *names)
        assert str(raised.value.where).startswith("--images")


def test_the_fullest_of_many_ranks_is_that_of_drawn_samples() -> None:
    """Against drawn Poisson counts: the expected fullest of 16 ranks, each with 8 samples a step."""
    workload = _workload(image_counts="mean:3")
    rows = StrategyRows.of([Strategy(dp_shard=16, micro_batch_size=2, num_microbatches=4)], [Relief()])
    counts = workload.image_counts
    assert counts is not None
    told = 1.0 + counts.variation * item_spread(rows, workload)[0]
    drawn = np.random.default_rng(3).poisson(3.0, (20_000, 16, 8)).sum(axis=2).max(axis=1).mean() / 24.0
    assert told == pytest.approx(drawn, rel=0.02)


def test_memory_is_for_the_fullest_micro_batch_and_never_for_more_than_all_have() -> None:
    counts = ItemCounts.model_validate("1:99+8:1")
    few, many = fullest_items(counts, np.array([1.0, 4096.0]))
    assert few == pytest.approx(8 / counts.expected) or few < 8 / counts.expected
    assert 1.0 < many < few <= 8 / counts.expected
    assert fullest_items(None, np.ones(2)).tolist() == [1.0, 1.0]


def test_equal_samples_cost_what_their_number_costs() -> None:
    strategy = Strategy(dp_shard=8, micro_batch_size=2, num_microbatches=4)
    number, alike = (_cost(_workload(**said), strategy) for said in ({"images_per_sample": 2}, {"image_counts": "2:1"}))
    for name in ("embedding_forward_s", "embedding_backward_s", "embedding_saved", "embedding_dense"):
        assert getattr(alike, name) == pytest.approx(getattr(number, name))


def test_unequal_samples_make_ranks_wait_the_more_the_fewer_they_have() -> None:
    counted = _workload(image_counts="0:1+4:1")
    large = Strategy(dp_shard=1, micro_batch_size=2, num_microbatches=32), Strategy(dp_shard=8, num_microbatches=8)
    alone, waiting = (_cost(counted, each) for each in large)
    even = [_cost(_workload(images_per_sample=2), each) for each in large]
    assert alone.embedding_forward_s == pytest.approx(even[0].embedding_forward_s)
    assert waiting.embedding_forward_s > 1.1 * even[1].embedding_forward_s
    assert waiting.embedding_saved > 1.5 * even[1].embedding_saved
    assert step_flops(MODEL, counted) == pytest.approx(step_flops(MODEL, _workload(images_per_sample=2)))


def test_a_number_and_a_distribution_exclude_each_other() -> None:
    with pytest.raises(ValidationError, match="drop one of them"):
        _workload(images_per_sample=2, image_counts="mean:2")
    ((pointer, message),) = contradictions(make_model(), _workload(image_counts="mean:2"))
    assert pointer == "/workload/image_counts"
    assert "has no vision tower" in message


def test_the_runtime_cuts_no_unequal_samples_apart() -> None:
    language = Strategy(tp=2, dp_shard=4).to_dict()
    finer, same, coarser = (TowerLayout(8 // dp, dp, 8) for dp in (8, 4, 2))
    assert can_share(finer, language, counted=False)
    assert not can_share(finer, language, counted=True)
    assert can_share(same, language, counted=True)
    assert can_feed(coarser, language, counted=True)
    assert not can_feed(finer, language, counted=True)
    assert can_feed(finer, language, counted=False)
