"""Intervals of step times: classes without knowledge of a framework, whole steps where its runs were studied."""

from __future__ import annotations

import math

import pytest

from planner.backends.accelerate.physics import ACCELERATE
from planner.backends.nanotron.physics import NANOTRON
from planner.backends.nemo.physics import NEMO
from planner.predict.physics.host import HOST_SPREAD
from planner.predict.physics.physics import EXPERTS_SPREAD, FEW_EXPERTS, FEW_EXPERTS_SPREAD, TUNED
from planner.predict.uncertainty import (
    FAST_SIDE,
    FRAMEWORK_PART,
    SLOW_SIDE,
    STUDIED_SLOW_SIDE,
    step_interval_s,
    step_sigma,
    z_of,
)

BREAKDOWN = {"compute": 8.0, "tp": 1.0, "pp_bubble": 1.0}


def test_a_studied_spread_is_that_of_whole_steps() -> None:
    low, high = step_interval_s(BREAKDOWN, studied_sigma=0.1, level=0.9)
    assert low == pytest.approx(10.0 * math.exp(-1.6449 * 0.1))
    assert high == pytest.approx(10.0 * math.exp(STUDIED_SLOW_SIDE * 1.6449 * 0.1))
    assert step_interval_s({"pp_bubble": 10.0}, studied_sigma=0.1, level=0.9) == pytest.approx((low, high))


def test_without_a_studied_spread_the_priors_stand() -> None:
    low, high = step_interval_s(BREAKDOWN)
    assert math.log(high / 10.0) == pytest.approx(SLOW_SIDE / FAST_SIDE * math.log(10.0 / low))
    assert step_sigma(BREAKDOWN) > 0.15


def test_calibrating_a_studied_framework_keeps_half_of_its_variance() -> None:
    assert step_sigma(BREAKDOWN, None, 0.02, 0.1) == pytest.approx(math.sqrt(0.5 * (0.02**2 + 0.1**2)))
    low, high = step_interval_s(BREAKDOWN, None, 0.02, studied_sigma=0.1)
    assert math.log(high / 10.0) == pytest.approx(math.log(10.0 / low))


def test_measured_inputs_stand_in_place_of_datasheets() -> None:
    """The studied spread has the datasheets' in it: only the framework's part of it stays beside measured inputs."""
    inputs = {"compute": 0.05, "network": 0.05}
    assert step_sigma({"compute": 1.0}, inputs, None, 0.1) == pytest.approx(math.hypot(0.1 * FRAMEWORK_PART, 0.05))


def test_jobs_beyond_the_studied_size_have_no_studied_spread() -> None:
    assert NANOTRON.spread_at(NANOTRON.studied_devices, experts=0) == NANOTRON.time_spread
    assert NANOTRON.spread_at(NANOTRON.studied_devices + 1, experts=0) is None
    assert TUNED.spread_at(8, experts=0) is None


def test_many_small_experts_are_less_certain_than_a_few_wide_ones() -> None:
    dense, few, many = (NEMO.spread_at(64, experts=experts) for experts in (0, FEW_EXPERTS, FEW_EXPERTS + 1))
    assert dense is not None
    assert few == pytest.approx(math.hypot(dense, FEW_EXPERTS_SPREAD))
    assert many == pytest.approx(math.hypot(dense, EXPERTS_SPREAD))


def test_a_host_that_no_studied_run_waited_for_has_its_own_spread() -> None:
    waiting = {"compute": 6.0, "host": 4.0}
    assert ACCELERATE.spread_at(8, experts=0, breakdown_s=waiting) == pytest.approx(
        math.hypot(0.163, 0.4 * HOST_SPREAD)
    )
    assert ACCELERATE.spread_at(8, experts=0, breakdown_s=BREAKDOWN) == ACCELERATE.time_spread
    assert NANOTRON.spread_at(8, experts=0, breakdown_s=waiting) == NANOTRON.time_spread


def test_levels_are_points_of_the_normal_distribution() -> None:
    assert z_of(0.8) == pytest.approx(1.2816, abs=1e-4)
    assert z_of(0.9) == pytest.approx(1.6449, abs=1e-4)
