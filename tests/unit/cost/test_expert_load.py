"""Uneven routing: the hottest rank by hand, its time and memory, published pairs of runs, and input that is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from planner.backends.megatron.physics import MEGATRON_CORE
from planner.model.load import load_model
from planner.model.operators import layer_operators
from planner.predict.candidate import Split
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.operator_time import matmul_sizes, moved_bytes
from planner.predict.cost.row_cost import CostModel
from planner.predict.hottest_share import hottest_share
from planner.predict.memory.activations import saved_bytes_of_operator
from planner.question.problem import Problem, Workload
from planner.question.routing import BY_BIAS, BY_LOSS, EVEN, ExpertLoad, load_of
from planner.search.evaluate import evaluate_split
from planner.search.row_context import row_context
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster

HISTOGRAM = ExpertLoad(kind="histogram", tokens=(4.0, 2.0, 1.0, 1.0))
PUBLISHED = {16384: 295 / 237, 32768: 335 / 277, 65536: 368 / 320, 131072: 389 / 357}
"""Forced balance over dropless by sequence length: Megatron-MoE-ModelZoo, best_practice/Qwen3/readme.md@c1ad0b5."""


def test_hottest_part_of_a_histogram_by_hand() -> None:
    """8 tokens.  One part: all.  Two: 6 of 8, twice the mean of 4 is 1.5.  Four: 4 of 8, of a mean of 2."""
    assert hottest_share(HISTOGRAM, 4, np.array([1.0, 2.0, 4.0])).tolist() == [1.0, 1.5, 2.0]


def test_hottest_expert_of_a_zipf_load_by_hand() -> None:
    """Exponent 1, four experts: shares 1, 1/2, 1/3, 1/4 of 25/12; the first has 12/25, 1.92 times a fourth."""
    zipf = ExpertLoad(kind="zipf", exponent=1.0)
    assert hottest_share(zipf, 4, np.array([4.0])) == pytest.approx([1.92])
    assert hottest_share(ExpertLoad(kind="zipf", exponent=0.0), 4, np.array([4.0])).tolist() == [1.0]


def test_a_steeper_load_and_more_parts_are_never_cooler() -> None:
    parts = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    loads = [hottest_share(ExpertLoad(kind="zipf", exponent=s), 64, parts) for s in (0.1, 0.3, 0.9)]
    for cooler, hotter in itertools.pairwise(loads):
        assert (hotter >= cooler).all()
    for each in (*loads, hottest_share(BY_LOSS, 64, parts)):
        assert (np.diff(each) >= -1e-12).all()


def test_typical_loads_meet_the_published_single_experts() -> None:
    sixty_four = np.array([64.0])
    assert hottest_share(BY_LOSS, 64, sixty_four) == pytest.approx([1.72], abs=1e-3)
    assert hottest_share(BY_BIAS, 64, sixty_four) == pytest.approx([1.04], abs=1e-3)
    assert load_of(None, load_model("deepseek-v3")) is BY_BIAS
    assert load_of(None, load_model("qwen3-235b-a22b")) is BY_LOSS
    assert load_of(EVEN, load_model("qwen3-235b-a22b")) is EVEN


def _hardware() -> Hardware:
    """As the published pairs ran: flex dispatcher, and TransformerEngine's kernel for the loss.

    Megatron-MoE-ModelZoo, model_configs/benchmarking/Qwen3-235B-A22B.yaml@c1ad0b5, lines 40 and 41
    (``--cross-entropy-fusion-impl: te``); our own files ask for the native form, which passes over fp32 logits.
    """
    physics = replace(MEGATRON_CORE, dispatch="node", wide_loss=False)
    return hardware_of(load_cluster("dgx-h100", num_devices=256), "bf16", physics=physics)


def _step_s(sequence: int, cp: int, routing: ExpertLoad | None) -> float:
    """The configurations of the published pairs: 256 H100, tp 4, ep 8, pp 8 in 4 chunks, norm and experts replayed."""
    strategy = Strategy(
        tp=4, sp=True, cp=cp, cp_kind="ring" if cp > 1 else "none", ep=8, pp=8, vpp=4, dp_shard=8 // cp,
        num_microbatches=32 * cp, schedule="interleaved", microbatch_group_size=8, zero_stage=1,
        recompute="selective", recompute_modules=("norm", "moe"),
    )  # fmt: skip
    workload = Workload(global_batch_size=256, sequence_length=sequence, routing=routing)
    reliefs = (Relief(), relief_of(strategy))
    costs = CostModel(load_model("qwen3-235b-a22b"), workload, _hardware(), reliefs)
    row = StrategyRows.of([strategy], reliefs)
    keyed = costs.keyed(row)
    context = row_context(costs, keyed[0], row, costs.rows(row, keyed))
    return evaluate_split(context, Split((2, *(3,) * 30, 2), (12,) * 8)).step_time_s


@pytest.mark.parametrize(("sequence", "cp"), [(16384, 1), (32768, 2), (65536, 4), (131072, 8)])
def test_published_pairs_of_forced_and_real_routing(sequence: int, cp: int) -> None:
    """The first pair is the one that was fitted; the others are within a point of what was measured."""
    assert _step_s(sequence, cp, None) / _step_s(sequence, cp, EVEN) == pytest.approx(PUBLISHED[sequence], abs=0.01)


def test_time_and_memory_are_those_of_the_hottest_rank_by_hand() -> None:
    """Eight ranks of 16 experts, the first rank of which gets a quarter of the tokens instead of an eighth: twice."""
    tokens = (2.0,) * 16 + (6.0 / 7.0,) * 112
    load = ExpertLoad(kind="histogram", tokens=tokens)
    workload = Workload(global_batch_size=8, sequence_length=4096, routing=load)
    even = workload.model_copy(update={"routing": EVEN})
    model, row = load_model("qwen3-235b-a22b"), StrategyRows.of([Strategy(ep=8, dp_shard=8)], (Relief(),))
    hot, cool = (CostModel(model, each, _hardware(), (Relief(),)).keyed(row)[0].keys for each in (workload, even))
    operators = {operator.name: operator for operator in layer_operators(model, 0)}
    up, act, permute = (operators[name] for name in ("experts_up", "experts_activation", "dispatch"))
    assert matmul_sizes(up, hot)[0] == pytest.approx(2 * matmul_sizes(up, cool)[0])
    assert moved_bytes(act, hot) == pytest.approx(2 * moved_bytes(act, cool))
    assert moved_bytes(permute, hot) == pytest.approx(1.5 * moved_bytes(permute, cool))
    assert saved_bytes_of_operator(up, hot) == pytest.approx(2 * saved_bytes_of_operator(up, cool))
    for name in ("qkv", "router"):
        assert saved_bytes_of_operator(operators[name], hot) == saved_bytes_of_operator(operators[name], cool)


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "even", "exponent": 1.0},
        {"kind": "zipf"},
        {"kind": "zipf", "exponent": -1.0},
        {"kind": "histogram", "tokens": [0.0, 0.0]},
        {"kind": "histogram", "tokens": [1.0, -1.0]},
        {"kind": "histogram", "tokens": [1.0, float("inf")]},
        {"kind": "histogram", "tokens": [1.0, 2.0], "exponent": 1.0},
        {"kind": "skewed"},
    ],
)
def test_a_load_that_says_nothing_or_too_much_is_refused_in_one_error(document: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as raised:
        ExpertLoad.model_validate(document)
    assert raised.value.error_count() == 1


def test_a_histogram_of_other_experts_than_the_models_is_refused() -> None:
    workload = Workload(global_batch_size=8, sequence_length=4096, routing=HISTOGRAM)
    cluster = load_cluster("dgx-h100")
    with pytest.raises(ValidationError, match="4 experts, the model's layers have 128"):
        Problem(model=load_model("qwen3-235b-a22b"), cluster=cluster, workload=workload)
