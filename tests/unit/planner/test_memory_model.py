"""The memory model says what the papers say: activations (arXiv 2205.05198), states (arXiv 1910.02054)."""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.operators import layer_operators
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys
from planner.predict.memory.activations import saved_bytes
from planner.predict.memory.states import state_bytes
from planner.question.problem import Workload
from planner.question.routing import EVEN
from planner.strategy.strategy import Relief
from tests.plan_factory import make_gpt

S, B, H, HEADS = 2048, 2, 6144, 64
SBH = S * B * H


def _saved(relief: Relief | None = None, **columns: int) -> float:
    values = dict.fromkeys(KEY_COLUMNS, 1) | {"sp": 0, "ring": 0, "overlap_tp": 0, "overlap_ep": 0}
    values |= {"micro_batch_size": B} | columns
    keys = LayerKeys(
        **{name: np.array([float(value)]) for name, value in values.items()}, sequence_length=S, routing=EVEN
    )
    return float(saved_bytes(layer_operators(make_gpt(H, HEADS, S), 0), keys, relief or Relief(), H)[0])


def test_one_device_keeps_34_sbh_less_two_dropout_masks() -> None:
    """Equation 1 of the paper without its s x s terms (flash attention) and without the two one-byte masks."""
    assert _saved() == pytest.approx((34 - 2) * SBH, rel=1e-12)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_tensor_parallelism_leaves_ten_undivided(tp: int) -> None:
    """Equation 2: sbh (10 + 24 / t); the 10 hold both masks, so 8 stay whole here."""
    assert _saved(tp=tp) == pytest.approx((8 + 24 / tp) * SBH, rel=1e-12)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_sequence_parallelism_divides_all(tp: int) -> None:
    """Equation 4: sbh (34 / t)."""
    assert _saved(tp=tp, sp=1) == pytest.approx(32 / tp * SBH, rel=1e-12)


def test_context_parallelism_divides_all() -> None:
    assert _saved(cp=4, ring=1) == pytest.approx(32 / 4 * SBH, rel=1e-12)
    assert _saved(cp=2, tp=2, sp=1) == pytest.approx(32 / 4 * SBH, rel=1e-12)


def test_full_recompute_keeps_the_input_of_the_layer() -> None:
    """Section 5: 2 sbh, and its share under sequence parallelism."""
    full = Relief("full")
    assert _saved(full) == 2 * SBH
    assert _saved(full, tp=8) == 2 * SBH
    assert _saved(full, tp=8, sp=1) == 2 * SBH / 8


def test_recomputing_the_attention_core_frees_nothing_under_flash_attention() -> None:
    assert _saved(Relief("selective", ("attention_core",))) == _saved()


def test_recomputing_norms_and_the_activation() -> None:
    """Both norms' outputs (2 + 2 of the sbh) and the activation's output (8) are made again."""
    assert _saved(Relief("selective", ("norm",))) == pytest.approx((32 - 4) * SBH, rel=1e-12)
    assert _saved(Relief("selective", ("activation",))) == pytest.approx((32 - 8) * SBH, rel=1e-12)
    assert _saved(Relief("selective", ("norm", "activation"))) == pytest.approx((32 - 12) * SBH, rel=1e-12)


def test_recomputing_the_mlp() -> None:
    """Input and output of the non-linearity go (8 + 8); the MLP's input stays, made by the norm before it."""
    assert _saved(Relief("selective", ("mlp",))) == pytest.approx((32 - 16) * SBH, rel=1e-12)
    assert _saved(Relief("selective", ("norm", "mlp"))) == pytest.approx((32 - 20) * SBH, rel=1e-12)


def test_offloaded_activations_are_not_on_the_device() -> None:
    assert _saved(Relief(offload=True)) == 0


@pytest.mark.parametrize(
    ("zero", "weights", "gradients", "optimizer"),
    [(0, 2, 4, 12), (1, 2, 4, 12 / 8), (2, 2, 4 / 8, 12 / 8), (3, 2 / 8, 4 / 8, 12 / 8)],
)
def test_bytes_a_parameter_of_each_zero_stage(zero: int, weights: float, gradients: float, optimizer: float) -> None:
    workload = Workload(global_batch_size=1, sequence_length=1)
    states = state_bytes(workload, np.array([zero]), np.array([8.0]), np.array([0]))
    assert (states.weights[0], states.gradients[0], states.optimizer[0]) == (weights, gradients, optimizer)
    assert states.total[0] == weights + gradients + optimizer
    assert states.host[0] == 0


@pytest.mark.parametrize(
    ("optimizer", "gradient", "total"),
    [
        ("adam", "fp32", 18),
        ("adam", "bf16", 16),
        ("adam_bf16_states", "fp32", 14),
        ("sgd", "fp32", 14),
        ("muon", "bf16", 12),
    ],
)
def test_bytes_a_parameter_of_each_optimizer(optimizer: str, gradient: str, total: float) -> None:
    workload = Workload.model_validate(
        {"global_batch_size": 1, "sequence_length": 1, "optimizer": optimizer, "gradient_dtype": gradient}
    )
    states = state_bytes(workload, np.array([0]), np.array([8.0]), np.array([0]))
    assert states.total[0] == total


def test_an_offloaded_optimizer_moves_its_share_to_the_host() -> None:
    workload = Workload(global_batch_size=1, sequence_length=1)
    states = state_bytes(workload, np.array([1]), np.array([4.0]), np.array([1]))
    assert (states.optimizer[0], states.host[0]) == (0, 3)
