"""Ring context parallelism pays for shorter kernels, merges and the launches of every step; all-to-all does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.model.load import load_model
from planner.model.operator import Operator
from planner.model.operators import layer_operators
from planner.predict.cost.efficiency import LAUNCH_S
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.launches import host_s
from planner.predict.cost.operator_time import attention_backward_ratio, operator_forward_s
from planner.predict.cost.ring_attention import MERGED_BYTES, STEP_KERNELS, row_tokens, steps_s
from planner.predict.layer_keys import LayerKeys
from planner.predict.physics.physics import TUNED
from profiles.catalogue import load_cluster
from solver.arrays import Array

MODEL = load_model("llama-3.1-8b")
CPS = (1, 2, 4, 8)


def keys_of(cp: tuple[int, ...], ring: int, length: int = 32768) -> LayerKeys:
    one = np.ones(len(cp))
    return LayerKeys(
        tp=one, sp=0 * one, cp=np.array(cp, dtype=float), ring=ring * one, ep=one, etp=one, micro_batch_size=one,
        overlap_tp=0 * one, overlap_ep=0 * one, sequence_length=length,
    )  # fmt: skip


def attention() -> Operator:
    return next(each for each in layer_operators(MODEL, 0) if each.op_class == "attention")


def hardware() -> Hardware:
    return hardware_of(load_cluster("dgx-h100", 8), "bf16")


def seconds(cp: tuple[int, ...], ring: int, length: int = 32768) -> Array:
    return operator_forward_s(attention(), keys_of(cp, ring, length), hardware())


def test_balanced_blocks_by_hand() -> None:
    """Blocks of a rank of four: a causal one over s/4, then three that are s/4 x s/8 or s/8 x s/4 (half each).

    A kernel without mask over k keys runs like causal rows of 2 k; mean of 1 / length over equal work.
    """
    lengths = [1.0, *(0.5 * (1 / 1.0 + 1 / 2.0) for _ in range(3))]
    by_hand = 32768 / 4 / np.mean(lengths)
    assert row_tokens(keys_of((4,), 1)) == pytest.approx([by_hand])
    assert row_tokens(keys_of((4,), 0)) == pytest.approx([32768])
    assert row_tokens(keys_of((4,), 1), causal=False) == pytest.approx([32768 / 4])


def test_a_ring_takes_longer_than_its_share_and_ever_more_so() -> None:
    shares = seconds(CPS, ring=1) * np.array(CPS)
    assert (np.diff(shares) > 0).all()
    assert seconds((1,), 1) == pytest.approx(seconds((1,), 0), rel=1e-12)
    whole_rows = (seconds(CPS, ring=0) - LAUNCH_S) * np.array(CPS)
    assert whole_rows == pytest.approx(whole_rows[0], rel=1e-9), "all-to-all holds whole rows"


def test_merges_by_hand() -> None:
    """Three merges of an output of 8,192 tokens of 32 heads of 128, of which three quarters are touched."""
    rates = hardware().rates
    forward_s, backward_s = steps_s(attention(), keys_of((4,), 1), rates)
    output = 8192 * 0.75 * 32 * 128
    by_hand = 3 * (MERGED_BYTES * output / rates.memory_bytes_per_s + 2 * LAUNCH_S)
    assert forward_s == pytest.approx([by_hand])
    gradients = output + 2 * output * 8 / 32
    assert backward_s == pytest.approx([3 * (MERGED_BYTES * gradients / rates.memory_bytes_per_s + 2 * LAUNCH_S)])
    assert not np.any(steps_s(attention(), keys_of((4,), 0), rates))


def test_backward_pays_too() -> None:
    ring, whole = (
        attention_backward_ratio(attention(), keys_of((8,), ring, 8192), hardware()) * seconds((8,), ring, 8192)
        for ring in (1, 0)
    )
    assert ring[0] > whole[0] * 1.2


def test_the_host_launches_every_step() -> None:
    traits = replace(TUNED, launch_s=10e-6)
    one, four = (host_s([attention()], keys_of((cp,), 1), traits) for cp in (1, 4))
    kernels = 2.0, 3.0
    for index in (0, 1):
        more = 3 * (kernels[index] + STEP_KERNELS) * 10e-6
        assert four[index] - one[index] == pytest.approx([more])
    assert host_s([attention()], keys_of((4,), 0), traits)[0] == pytest.approx(one[0])
