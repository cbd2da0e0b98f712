"""Exchanges of routed tokens hide beside their own piece of another micro-batch's compute."""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.model.operators import layer_operators
from planner.predict.cost.expert_overlap import Windows
from planner.predict.cost.overlap import SLOWDOWN, WINDOW_FRACTION

LAYER = {operator.name: operator for operator in layer_operators(builtin_model("qwen3-30b-a3b"), 0)}
SECOND = np.ones(1)
NONE = np.zeros(1)


def windows(**seconds: tuple[float, float, float]) -> Windows:
    found = Windows(1)
    for name, (forward, inputs, weights) in seconds.items():
        found.add(LAYER[name], forward * SECOND, inputs * SECOND, weights * SECOND)
    return found


def test_attention_and_experts_are_pieces_of_their_own() -> None:
    found = windows(qkv=(1.0, 2.0, 4.0), router=(0.5, 0.25, 0.0), experts_up=(8.0, 16.0, 32.0))
    assert found.first_s == pytest.approx(1.0 + 4.0 + 0.5)
    assert found.last_s == pytest.approx(2.0 + 0.25)
    assert found.experts_s == pytest.approx(56.0)


def test_exchanges_hide_where_compute_is_long_and_are_seen_where_it_is_not() -> None:
    long = windows(qkv=(9.0, 9.0, 9.0), experts_up=(9.0, 9.0, 9.0))
    slowdown = np.full(1, SLOWDOWN)
    assert long.exposed_s(4.0 * SECOND, slowdown) == pytest.approx(4.0 * SLOWDOWN)
    assert windows().exposed_s(4.0 * SECOND, slowdown) == pytest.approx(4.0)
    # Experts alone hide the two exchanges beside them, not the other two.
    experts = windows(experts_up=(9.0, 9.0, 9.0))
    assert experts.exposed_s(4.0 * SECOND, slowdown) == pytest.approx(2.0 + 2.0 * SLOWDOWN)


def test_a_piece_hides_what_it_lasts() -> None:
    short = windows(qkv=(1.0, 1.0, 0.0), experts_up=(1.0, 1.0, 0.0))
    hidden = (1.0 - SLOWDOWN) * WINDOW_FRACTION * (1.0 + 1.0 + 2.0)
    assert short.exposed_s(40.0 * SECOND, np.full(1, SLOWDOWN)) == pytest.approx(40.0 - hidden)


def test_more_to_send_never_takes_less() -> None:
    found = windows(qkv=(1.0, 2.0, 0.5), experts_up=(1.0, 0.5, 0.5))
    sent = np.linspace(0.0, 30.0, 61)
    seen = found.exposed_s(sent, np.full(61, SLOWDOWN))
    assert np.all(np.diff(seen) >= 0.0)
    assert np.all(seen <= sent + 1e-12)
    assert seen[0] == NONE
