"""What a framework keeps beside a tuned run agrees with closed forms written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.model.operators import layer_operators
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.model_cost import model_cost
from planner.predict.cost.row_cost import CostModel
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys
from planner.predict.memory.activations import replayed_shares, saved_bytes
from planner.predict.memory.framework_kept import kept_matmuls
from planner.predict.memory.states import state_bytes
from planner.predict.physics.physics import TUNED, Physics
from planner.predict.stage_memory import stage_memory
from planner.question.problem import Workload
from planner.question.routing import EVEN
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster
from tests.plan_factory import make_gpt

S, B, H, HEADS = 1024, 4, 2304, 24
SBH = S * B * H
SCORES = HEADS * S * S * B
LLAMA = builtin_model("llama-3.1-8b")


def _keys(sequence_length: int = S, **columns: int) -> LayerKeys:
    values = dict.fromkeys(KEY_COLUMNS, 1) | {"sp": 0, "ring": 0, "overlap_tp": 0, "overlap_ep": 0}
    values |= {"micro_batch_size": B} | columns
    arrays = {name: np.array([float(value)]) for name, value in values.items()}
    return LayerKeys(**arrays, sequence_length=sequence_length, routing=EVEN)


def _kept(traits: Physics, relief: Relief | None = None, **columns: int) -> float:
    return float(
        saved_bytes(layer_operators(make_gpt(H, HEADS, S), 0), _keys(**columns), relief or Relief(), H, traits)[0]
    )


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_unfused_attention_with_dropout_is_equation_2_of_the_paper(tp: int) -> None:
    """sbh (10 + 24 / t) + 5 a s^2 b / t: Korthikanti et al., arXiv 2205.05198."""
    traits = Physics(attention="unfused", dropout=True)
    assert _kept(traits, tp=tp) == pytest.approx((10 + 24 / tp) * SBH + 5 * SCORES / tp, rel=1e-12)


def test_selective_recompute_frees_the_scores_and_full_recompute_everything() -> None:
    traits = Physics(attention="unfused", dropout=True)
    assert _kept(traits, Relief("selective", ("attention_core",))) == pytest.approx(34 * SBH, rel=1e-12)
    assert _kept(traits, Relief("full")) == 2 * SBH


def test_without_dropout_only_the_softmax_of_the_scores_stays() -> None:
    assert _kept(Physics(attention="unfused")) == pytest.approx(32 * SBH + 2 * SCORES, rel=1e-12)


def test_a_transposed_attention_output_is_kept_twice() -> None:
    assert _kept(Physics(attention_output_copies=1.0), tp=4) - _kept(TUNED, tp=4) == 2 * SBH / 4


def test_operator_checkpointing_keeps_every_second_matmul_and_attention() -> None:
    """Of wq wk wv wo w1 w3 w2: wq, wv, w1, w2; with the layer's input and the attention output h h kv h f h."""
    operators = layer_operators(LLAMA, 0)
    assert [(operator.name, width) for operator, width in kept_matmuls(operators)] == [
        ("qkv", 4096),
        ("qkv", 1024),
        ("up", 14_336),
        ("down", 4096),
    ]
    relief, traits = Relief("selective", ("norm", "activation")), Physics(operator_checkpointing=True)
    kept = saved_bytes(operators, _keys(8192, micro_batch_size=2), relief, 4096, traits)
    assert kept[0] == 2 * 2 * 8192 * (4 * 4096 + 1024 + 14_336)
    shares = replayed_shares(operators, relief, traits)
    assert (shares["output_projection"], shares["up"]) == (1.0, 0.5)
    assert shares["qkv"] == pytest.approx(1024 / 6144)  # wk
    assert not {"down", "attention_core"} & set(shares)


def _costs(traits: Physics, reliefs: tuple[Relief, ...] = (Relief(),)) -> CostModel:
    hardware = hardware_of(load_cluster("dgx-h100", 8), "bf16")
    workload = Workload(global_batch_size=8, sequence_length=8192)
    return CostModel(LLAMA, workload, replace(hardware, physics=traits), reliefs)


@pytest.mark.parametrize(("kept", "passing"), [(4.0, 2.0), (2.0, 2.0), (4.0, 8.0)])
def test_bytes_a_logit(kept: float, passing: float) -> None:
    """Two hidden-wide inputs (final norm, head) and so many bytes a logit kept; so many more while the loss runs."""
    costs = _costs(Physics(kept_logit_bytes=kept, passing_logit_bytes=passing))
    head = model_cost(LLAMA, costs.workload, costs.hardware, _keys(8192, micro_batch_size=1, tp=2), (Relief(),)).head
    logits = 8192 * 128_256 / 2
    assert head.saved_bytes[0] == 2 * 2 * 8192 * 4096 + kept * logits
    assert head.transient_bytes[0] == passing * logits


def test_fp32_shards_are_sixteen_bytes_over_the_ranks() -> None:
    """PyTorch FSDP: fp32 parameter, gradient and two moments, all sharded; ZeRO-2 keeps the 16-bit weights whole."""
    workload = Workload(global_batch_size=1, sequence_length=1, gradient_dtype="bf16")
    traits = Physics(fp32_shards=True)
    states = state_bytes(workload, np.array([0, 1, 2, 3]), np.full(4, 8.0), np.zeros(4, dtype=int), traits)
    assert states.total.tolist() == [16, 4 + 12 / 8, 2 + 16 / 8, 16 / 8]


def test_a_replay_uses_the_memory_that_the_logits_left() -> None:
    """The head's backward is over when the first layer is replayed: the larger of the two counts, not their sum."""
    strategy = Strategy(tp=1, pp=2, dp_shard=4, num_microbatches=2, recompute="full")
    reliefs = (Relief(), relief_of(strategy))
    costs = _costs(TUNED, reliefs)
    rows = StrategyRows.of([strategy], reliefs)
    cost = costs.rows(rows)
    memory = stage_memory(rows, cost, reliefs, 2)
    replay = float((cost.saved_bytes - cost.relieved_bytes)[0, 0])
    logits = float(cost.head_saved[0] + cost.head_transient[0])
    assert memory.passes.replay_bytes[0].tolist() == [replay, max(0.0, replay - logits)]
    assert logits > replay > 0
