"""The output bias of routed experts, added by PyTorch's own operators expert by expert."""

from __future__ import annotations

from dataclasses import replace

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
from planner.predict.physics.physics import TUNED, Physics
from profiles.catalogue import load_cluster

TOKENS, EP = 8192, 8.0


def keys() -> LayerKeys:
    one, none = np.ones(1), np.zeros(1)
    return LayerKeys(
        tp=one, sp=none, cp=one, ring=none, ep=EP * one, etp=one, micro_batch_size=one, overlap_tp=none,
        overlap_ep=none, sequence_length=TOKENS,
    )  # fmt: skip


def down(model: str) -> Operator:
    return next(each for each in layer_operators(load_model(model), 0) if each.name == "experts_down")


def seconds(model: str, where: Hardware) -> np.ndarray:
    forward_s = operator_forward_s(down(model), keys(), where)
    return np.array([forward_s[0], *(each[0] for each in operator_backward_s(down(model), keys(), where, forward_s))])


def hardware(*, eager: bool) -> Hardware:
    return hardware_of(load_cluster("dgx-h100", 8), "bf16", physics=replace(TUNED, eager_expert_bias=eager))


def test_bytes_of_an_eager_bias_by_hand() -> None:
    """28 bytes an element of the output forward and 40 backward; the weight gradient takes none."""
    where = hardware(eager=True)
    more = seconds("gpt-oss-120b", where) - seconds("gpt-oss-120b", hardware(eager=False))
    elements = TOKENS * 4 * 2880.0  # four of the experts a token
    wanted = [each * elements / where.rates.memory_bytes_per_s for each in (28.0, 40.0)]
    assert more[:2] == pytest.approx(wanted, rel=0.02, abs=2 * LAUNCH_S)
    assert more[2] == pytest.approx(0.0, abs=1e-12)


def test_experts_without_a_bias_pay_nothing() -> None:
    assert (
        seconds("qwen3-235b-a22b", hardware(eager=True)).tolist()
        == seconds("qwen3-235b-a22b", hardware(eager=False)).tolist()
    )


def test_its_kernels_are_launched_for_every_local_expert() -> None:
    def launched(physics: Physics) -> np.ndarray:
        return np.array([float(each[0]) for each in host_s([down("gpt-oss-120b")], keys(), physics)])

    with_bias, without = (replace(TUNED, launch_s=1.0, eager_expert_bias=each) for each in (True, False))
    assert (launched(with_bias) - launched(without)).tolist() == [2 * 128 / EP, 5 * 128 / EP]


def test_megatron_core_and_what_stands_on_it_add_it_so() -> None:
    assert MEGATRON_CORE.eager_expert_bias
    assert NEMO.eager_expert_bias
