"""Is the memory bill of a native plan what torch's tracker counts?  The real trainer on fake tensors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")

from benchmarks.native_memory import SELECTIVE, Bytes, model, predicted, predicted_plan, tracked
from planner.strategy import Strategy

pytestmark = [
    pytest.mark.slow,
    # The tracker's own hooks on DTensors and autograd.
    pytest.mark.filterwarnings("ignore"),
]

EXACT: dict[str, dict[str, Any]] = {
    "one device": {"zero_stage": 0, "num_microbatches": 2},
    "zero 1": {"dp_shard": 64, "zero_stage": 1, "num_microbatches": 2},
    "zero 3": {"dp_shard": 64, "zero_stage": 3, "num_microbatches": 2},
}
SAFE: dict[str, dict[str, Any]] = {
    "full recompute": {"dp_shard": 64, "zero_stage": 3, "recompute": "full"},
    "selective recompute": {"dp_shard": 64, "zero_stage": 3, **SELECTIVE},
}


def bytes_of(switches: dict[str, Any]) -> tuple[Bytes, Bytes]:
    """Billed and counted."""
    plan = predicted_plan(model(num_layers=4), Strategy(**switches))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return predicted(plan), tracked(plan)


@pytest.mark.parametrize("name", EXACT)
def test_the_bill_is_what_the_tracker_counts(name: str) -> None:
    billed, counted = bytes_of(EXACT[name])
    assert billed.states == pytest.approx(counted.states, rel=0.001)
    assert billed.activations == pytest.approx(counted.activations, rel=0.05)
    assert billed.total == pytest.approx(counted.total, rel=0.05)


@pytest.mark.parametrize("name", SAFE)
def test_what_is_kept_is_right_and_the_whole_on_the_safe_side(name: str) -> None:
    """The bill adds the loss, the gathered units and a replay, which this trainer never holds at one moment."""
    billed, counted = bytes_of(SAFE[name])
    assert billed.states == pytest.approx(counted.states, rel=0.001)
    assert billed.activations == pytest.approx(counted.activations, rel=0.05)
    assert counted.total <= billed.total <= 1.4 * counted.total
