"""The memory bill of a native plan is what torch's tracker counts: the real trainer on fake tensors."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")

from benchmarks.native_memory import CASES, differences
from tests.sampling import drawn

pytestmark = [
    pytest.mark.slow,
    # The tracker's own hooks on DTensors and autograd.
    pytest.mark.filterwarnings("ignore"),
]

TOLERANCE = 0.05
AT_THE_LOSS = ("one device", "zero 2, 64 ranks", "zero 3, 64 ranks", "zero 3, full recompute", "cp 2, gathered")
"""Cases whose peak is at the loss, when every kept activation is still there."""


def _kind(name: str) -> tuple[object, ...]:
    strategy = CASES[name][1]
    return strategy.pp > 1, strategy.tp > 1, strategy.cp > 1, strategy.recompute


COUNTED = drawn(list(CASES), 11, kept=("one device", "zero 3, 64 ranks"), kind=_kind)


@pytest.mark.parametrize("name", COUNTED)
def test_the_bill_is_what_the_tracker_counts(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for stage, billed, counted in differences(name):
            assert billed.total == pytest.approx(counted.total, rel=TOLERANCE), f"stage {stage}"
            if name in AT_THE_LOSS:
                assert billed.activations == pytest.approx(counted.activations, rel=TOLERANCE)
