"""The cost of tensor parallelism where every column-parallel matmul sums its own input gradient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.model.load import load_model
from planner.model.operators import layer_operators
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.layer import layer_kind
from planner.predict.cost.payload import column_reductions, exchanges
from planner.predict.layer_keys import LayerKeys
from planner.predict.physics.physics import TUNED, Physics
from profiles.catalogue import load_cluster

OPERATORS = layer_operators(load_model("llama-3.1-8b"), 0)
EACH = replace(TUNED, reduces_each_column=True)
BACKWARD_ONLY = replace(TUNED, overlaps_tp_forward=False)


def keys(*, overlap: bool = False) -> LayerKeys:
    one, off = np.ones(1), np.zeros(1)
    return LayerKeys(
        tp=4 * one, sp=off, cp=one, ring=off, ep=one, etp=one, micro_batch_size=one,
        overlap_tp=one if overlap else off, overlap_ep=off, sequence_length=4096,
    )  # fmt: skip


def communication_s(traits: Physics, *, overlap: bool = False) -> tuple[float, float]:
    hardware = hardware_of(load_cluster("dgx-h100"), "bf16", physics=traits)
    sums = layer_kind(OPERATORS, keys(overlap=overlap), hardware).sums
    return float(sums.communication_forward_s[0]), float(sums.communication_backward_s[0])


def test_query_key_value_gate_and_up_have_one_each() -> None:
    assert column_reductions(OPERATORS) == {"output_projection": 3.0, "down": 2.0}
    forward, backward = communication_s(TUNED)
    assert communication_s(EACH) == pytest.approx((forward, 2.5 * backward))


def test_the_bill_counts_them_in_the_backward_pass() -> None:
    down = next(operator for operator in OPERATORS if operator.name == "down")
    (reduced, *_) = exchanges(down, keys(), narrow=False, column_reductions=2.0)
    assert (reduced.operation, reduced.forward[0], reduced.backward[0]) == ("all_reduce", 1.0, 2.0)


def test_overlap_of_the_backward_pass_alone_leaves_the_forward_pass() -> None:
    forward, backward = communication_s(TUNED)
    part = communication_s(BACKWARD_ONLY, overlap=True)
    assert part[0] == forward
    assert part[1] < backward
    assert communication_s(BACKWARD_ONLY) == (forward, backward)
