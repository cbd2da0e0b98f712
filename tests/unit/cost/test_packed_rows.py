"""Documents in sequences: padding, context by the document mask, and what ranks wait for."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.model.load import load_model
from planner.model.operators import layer_operators
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.operator_time import attention_flops
from planner.predict.cost.row_cost import CostModel
from planner.predict.cost.uneven_rows import pipeline_part, sharded_attention, uneven_attention
from planner.predict.order_statistics import expected_maximum
from planner.predict.packed_rows import PackedRows, documents_of, real_tokens_per_step
from planner.predict.training_flops import step_flops
from planner.question.problem import Workload
from planner.question.sequences import Sequences
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster

PACKINGS = ("concatenated", "greedy", "balanced")


def _lengths(**said: Any) -> Sequences:
    return Sequences.model_validate({"kind": "packed", **said})


def _attended(pieces: list[int], window: int | None, *, causal: bool) -> float:
    """Mean number of tokens in reach of one, counted in the mask itself."""
    document = np.repeat(np.arange(len(pieces)), pieces)
    at = np.arange(len(document))
    mask = document[:, None] == document[None, :]
    if causal:
        mask &= at[:, None] >= at[None, :]
        if window is not None:
            mask &= at[:, None] - at[None, :] < window
    return float(mask.sum() / len(at))


@pytest.mark.parametrize("window", [None, 1, 7, 64])
@pytest.mark.parametrize("pieces", [[1], [5, 5], [1, 9, 30], [64, 3, 17, 40]])
def test_context_is_what_the_document_mask_holds(pieces: list[int], window: int | None) -> None:
    rows = PackedRows(200, np.array(pieces, float), np.zeros(len(pieces), dtype=np.int64), 0.0)
    assert rows.context(window, causal=True) == pytest.approx(_attended(pieces, window, causal=True))
    assert rows.context(None, causal=False) == pytest.approx(_attended(pieces, None, causal=False))
    assert rows.row_context(None, causal=True) == pytest.approx(rows.context(None, causal=True) * sum(pieces) / 200)


def test_two_lengths_by_hand() -> None:
    """300 and 100 tokens fill 400 exactly; padded to 400 they are half of the tokens, cut at 200 three eighths."""
    both = {"histogram": {"100": 1, "300": 1}}
    packed = documents_of(_lengths(**both), 400)
    assert packed.real_fraction == 1.0
    assert packed.context(None, causal=True) == pytest.approx((300 * 301 + 100 * 101) / 2 / 400)
    assert packed.longest == pytest.approx((300**2 + 100**2) / 400)
    assert packed.spread == pytest.approx(0.0)
    padded = documents_of(_lengths(kind="padded", **both), 400)
    assert (padded.real_fraction, padded.cut_fraction) == (0.5, 0.0)
    cut = documents_of(_lengths(kind="padded", **both), 200)
    assert (cut.real_fraction, cut.cut_fraction) == (0.75, 0.25)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("said", [{"mean": 512}, {"percentiles": {50: 300, 90: 1500, 99: 9000}}, {"mean": 7000}])
@pytest.mark.parametrize("tokens", [2048, 16384])
def test_no_sequence_overflows(said: dict[str, Any], tokens: int, packing: str) -> None:
    found = documents_of(_lengths(**said, packing=packing), tokens)
    held = np.bincount(found.row, weights=found.pieces)
    assert held.max() <= tokens
    assert (found.pieces > 0).all()
    assert np.unique(found.row).tolist() == list(range(len(held)))
    assert found.real_fraction == pytest.approx(held.mean() / tokens)
    if packing == "concatenated":
        assert found.real_fraction == 1.0


def test_balanced_packing_is_more_even_and_no_emptier() -> None:
    greedy, balanced = (documents_of(_lengths(mean=512, packing=packing), 32768) for packing in PACKINGS[1:])
    assert balanced.spread < 0.5 * greedy.spread
    assert balanced.real_fraction == pytest.approx(greedy.real_fraction, abs=0.01)


def test_the_expected_slowest_by_hand() -> None:
    """Work of 1/2 or 3/2: the largest of N is 3/2 - 2^-N; the larger of two means of two is 1.1875."""
    rows = PackedRows(4, np.array([1.0, 2.0]), np.array([0, 1]), 0.0)
    assert rows.work().tolist() == [0.5, 1.5]
    found = rows.waiting(np.array([1, 1, 1, 2, 2]), np.array([1, 2, 8, 2, 1]))
    assert found == pytest.approx([0.0, 0.25, 0.5 - 2.0**-8, 0.1875, 0.0], abs=3e-3)


def test_the_expected_slowest_against_draws() -> None:
    rows = documents_of(_lengths(mean=640), 8192)
    draw = np.random.default_rng(0)
    for n, ranks in ((1, 8), (4, 16), (32, 8), (200, 16)):
        means = draw.choice(rows.work(), size=(1500, ranks, n)).mean(axis=2).max(axis=1).mean() - 1.0
        assert rows.waiting(np.array([n]), np.array([ranks]))[0] == pytest.approx(means, rel=0.1)


def _one_forward_one_backward_s(times: np.ndarray, stages: int) -> float:
    """A step of 1F1B whose micro-batches take these times on every stage, a third of each forward."""
    count, done, clock, at = len(times), dict[tuple[str, int, int], float](), [0.0] * stages, [0] * stages
    orders = []
    for stage in range(stages):
        warm = min(count, stages - stage)
        order = [("F", k) for k in range(warm)]
        for k in range(count):
            order += [("B", k), *([("F", warm + k)] if warm + k < count else [])]
        orders.append(order)
    while any(place < len(order) for place, order in zip(at, orders, strict=True)):
        for stage, order in enumerate(orders):
            while at[stage] < len(order):
                kind, k = order[at[stage]]
                before = (kind, k, stage - 1) if kind == "F" else (kind, k, stage + 1)
                if kind == "B" and stage == stages - 1:
                    before = ("F", k, stage)
                ready = 0.0 if kind == "F" and stage == 0 else done.get(before)
                if ready is None:
                    break
                clock[stage] = max(clock[stage], ready) + times[k] / 3.0 * (1.0 if kind == "F" else 2.0)
                done[kind, k, stage] = clock[stage]
                at[stage] += 1
    return max(clock)


def test_a_pipeline_waits_for_the_slowest_in_flight() -> None:
    """Simulated steps with gamma-distributed micro-batches: the part of the slowest that shows, and where it is off."""
    draw, off = np.random.default_rng(1), []
    for spread, stages, rounds in itertools.product((0.1, 0.3), (2, 4, 8, 16), (1, 2, 4, 16)):
        count = stages * rounds
        steps = [
            _one_forward_one_backward_s(draw.gamma(spread**-2, spread**2, count), stages) / (count + stages - 1)
            for _ in range(40)
        ]
        shown = (np.mean(steps) - 1.0) / (spread * expected_maximum(stages))
        off.append(abs(shown - float(pipeline_part(np.array([stages]), np.array([count]))[0])))
    print(np.mean(off), max(off))
    assert np.mean(off) < 0.15
    assert max(off) < 0.45


WORKLOAD = Workload(global_batch_size=64, sequence_length=8192, sequences=_lengths(mean=640))
STRATEGIES = [
    Strategy(dp_shard=8, num_microbatches=8, zero_stage=1),
    Strategy(dp_shard=8, num_microbatches=8, zero_stage=3),
    Strategy(dp_shard=4, num_microbatches=16, zero_stage=1, tp=2, sp=True),
    Strategy(dp_shard=2, num_microbatches=32, zero_stage=1, pp=4),
    Strategy(dp_shard=4, num_microbatches=8, micro_batch_size=2, zero_stage=1, pp=2),
]


def _costs(workload: Workload, physics_unfused: bool = False) -> CostModel:
    hardware = hardware_of(load_cluster("dgx-h100", num_devices=8), "bf16")
    if physics_unfused:
        hardware = replace(hardware, physics=replace(hardware.physics, attention="unfused"))
    return CostModel(load_model("llama-3.1-8b"), workload, hardware, (Relief(),))


def test_strategies_cost_alone_what_they_cost_together() -> None:
    """Ranks that wait are a part of what a sharding key is of."""
    costs, rows = _costs(WORKLOAD), StrategyRows.of(STRATEGIES, (Relief(),))
    together = costs.rows(rows).layer_s[:, 0]
    alone = [costs.rows(rows.take(np.array([at]))).layer_s[0, 0] for at in range(len(rows))]
    assert together == pytest.approx(alone, rel=1e-12)
    assert len(set(np.round(uneven_attention(rows, costs.documents, WORKLOAD), 9))) == 4  # type: ignore[arg-type]


def test_attention_takes_as_long_as_on_the_slowest_rank() -> None:
    """A rank of eight micro-batches of one sequence meets the others once a step, under ZeRO-3 in every one."""
    costs, rows = _costs(WORKLOAD), StrategyRows.of(STRATEGIES[:2], (Relief(),))
    documents = costs.documents
    assert documents is not None
    keys, _ = costs.keys(rows)
    [operator] = [each for each in layer_operators(costs.model, 0) if each.op_class == "attention"]
    slowest = 1.0 + documents.waiting(np.array([8]), np.array([8]))[0]
    pairs = documents.row_context(None, causal=True) * 8192
    assert attention_flops(operator, keys)[0] == pytest.approx(
        slowest * 2.0 * pairs * operator.num_heads * (operator.qk_dim + operator.v_dim)
    )
    more = sharded_attention(rows, documents, WORKLOAD)
    every = 1.0 + documents.waiting(np.array([1]), np.array([8]))[0]
    assert more.tolist() == pytest.approx([1.0, every / slowest])
    table, _ = costs.keyed(rows)
    waits_s = costs.rows(rows).layer_forward_s[1, 0] - _costs(WORKLOAD).rows(rows).layer_forward_s[0, 0]
    assert waits_s >= (more[1] - 1.0) * table.layers.attention_forward_s[0, 0] * 0.999


def test_short_documents_are_faster_and_whole_ones_are_as_before() -> None:
    rows = StrategyRows.of(STRATEGIES[:1], (Relief(),))

    def layer_s(sequences: Sequences | None, *, unfused: bool = False) -> float:
        workload = WORKLOAD.model_copy(update={"sequences": sequences})
        return float(_costs(workload, unfused).rows(rows).layer_s[0, 0])

    whole = layer_s(None)
    assert layer_s(_lengths(mean=640)) < 0.97 * whole
    assert layer_s(_lengths(histogram={"8192": 1})) == pytest.approx(whole, rel=1e-12)
    assert layer_s(_lengths(kind="padded", mean=640)) == whole
    assert layer_s(_lengths(mean=640), unfused=True) == layer_s(None, unfused=True)


def test_useful_flops_and_rates_are_of_real_tokens() -> None:
    model = load_model("llama-3.1-8b")
    padded = WORKLOAD.model_copy(update={"sequences": _lengths(kind="padded", histogram={"2048": 1})})
    short = Workload(global_batch_size=64, sequence_length=2048)
    assert real_tokens_per_step(padded) == 64 * 2048
    assert step_flops(model, padded) == pytest.approx(step_flops(model, short), rel=1e-12)
    whole = WORKLOAD.model_copy(update={"sequences": _lengths(histogram={"8192": 1})})
    assert step_flops(model, whole) == pytest.approx(
        step_flops(model, whole.model_copy(update={"sequences": None})), rel=1e-12
    )
