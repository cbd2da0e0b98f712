"""Probabilities multiply ungated experts by PyTorch's own operators, and recurrences are transposed by copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.backends.megatron.physics import MEGATRON_CORE
from planner.backends.nemo.physics import NEMO
from planner.model.load import load_model
from planner.model.operator import Operator
from planner.model.operators import layer_operators
from planner.predict.cost.efficiency import LAUNCH_S
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.launches import host_s
from planner.predict.cost.operator_time import operator_backward_s, operator_forward_s
from planner.predict.layer_keys import LayerKeys
from planner.predict.physics.physics import TUNED
from profiles.catalogue import load_cluster

TOKENS = 8192
HYBRID = "nemotron-3-nano-30b-a3b"
MIXER, MIXTURE = 0, 1


def keys(samples: float = 1.0) -> LayerKeys:
    one, none = np.ones(1), np.zeros(1)
    return LayerKeys(
        tp=one, sp=none, cp=one, ring=none, ep=8 * one, etp=one, micro_batch_size=samples * one, overlap_tp=none,
        overlap_ep=none, sequence_length=TOKENS,
    )  # fmt: skip


def named(model: str, layer: int, name: str) -> Operator:
    return next(each for each in layer_operators(load_model(model), layer) if each.name == name)


def hardware(**traits: Any) -> Hardware:
    return hardware_of(load_cluster("dgx-h100", 8), "bf16", physics=replace(TUNED, **traits))


def seconds(operator: Operator, where: Hardware, samples: float = 1.0) -> tuple[float, float]:
    forward_s = operator_forward_s(operator, keys(samples), where)
    return float(forward_s[0]), float(operator_backward_s(operator, keys(samples), where, forward_s)[0][0])


def test_bytes_of_an_eager_weighting_by_hand() -> None:
    """12 bytes an element more than a fused kernel's 4 forward; 40 backward where it has 6."""
    operator, where = named(HYBRID, MIXTURE, "experts_activation"), hardware(eager_expert_weights=True)
    eager, fused = seconds(operator, where), seconds(operator, hardware())
    elements = TOKENS * 6 * 1856.0  # six of the experts a token
    wanted = [each * elements / where.rates.memory_bytes_per_s for each in (12.0, 34.0)]
    more = [own - without for own, without in zip(eager, fused, strict=True)]
    assert more == pytest.approx(wanted, rel=0.02, abs=3 * LAUNCH_S)


@pytest.mark.parametrize(
    "operator",
    [
        named("qwen3-235b-a22b", 0, "experts_activation"),
        named(HYBRID, MIXTURE, "shared_activation"),
    ],
    ids=["gated", "shared"],
)
def test_gated_and_shared_experts_pay_nothing(operator: Operator) -> None:
    assert seconds(operator, hardware(eager_expert_weights=True)) == seconds(operator, hardware())


def test_its_kernels_are_launched() -> None:
    operator = named(HYBRID, MIXTURE, "experts_activation")
    eager, fused = (
        host_s([operator], keys(), replace(TUNED, launch_s=1.0, eager_expert_weights=each)) for each in (True, False)
    )
    assert [float(own[0] - without[0]) for own, without in zip(eager, fused, strict=True)] == [2.0, 5.0]


def test_several_samples_are_transposed_by_copies_and_one_is_not() -> None:
    operator = named(HYBRID, MIXER, "recurrence")
    where = hardware(sequence_first_scans=True)
    assert seconds(operator, where) == seconds(operator, hardware())
    more = [a - b for a, b in zip(seconds(operator, where, 2.0), seconds(operator, hardware(), 2.0), strict=True)]
    copied = 4.0 * 2 * TOKENS * (10304 + 4096) / where.rates.memory_bytes_per_s  # all of the input product, the output
    assert more == pytest.approx([copied, copied], rel=0.03)


def test_megatron_core_and_what_stands_on_it_run_so() -> None:
    for physics in (MEGATRON_CORE, NEMO):
        assert physics.eager_expert_weights
        assert physics.sequence_first_scans
