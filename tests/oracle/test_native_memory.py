"""The memory bill of a native plan is what torch's tracker counts: the real trainer on fake tensors."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")

from benchmarks.native_memory import CASES, differences

pytestmark = [
    pytest.mark.slow,
    # The tracker's own hooks on DTensors and autograd.
    pytest.mark.filterwarnings("ignore"),
]

TOLERANCE = 0.05
AT_THE_LOSS = ("one device", "zero 2, 64 ranks", "zero 3, 64 ranks", "zero 3, full recompute", "cp 2, gathered")
"""Cases whose peak is at the loss, when every kept activation is still there."""


@pytest.mark.parametrize("name", CASES)
def test_the_bill_is_what_the_tracker_counts(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for stage, billed, counted in differences(name):
            assert billed.total == pytest.approx(counted.total, rel=TOLERANCE), f"stage {stage}"
            if name in AT_THE_LOSS:
                assert billed.activations == pytest.approx(counted.activations, rel=TOLERANCE)
