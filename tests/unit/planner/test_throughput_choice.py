"""The two rules that pick an allocation from a throughput curve."""

from __future__ import annotations

from typing import Any

import pytest

from planner.answers.throughput.choice import fewest_devices, most_devices
from planner.answers.throughput.curve import Throughput, ThroughputPoint


def point(devices: int, rate: float | None, **changes: Any) -> ThroughputPoint:
    """``rate``: tokens a second a device; None = it does not fit."""
    if rate is None:
        return ThroughputPoint(name=f"{devices}", num_devices=devices, fits=False)
    numbers = {"tokens_per_s_per_device": rate, "step_time_s": 1 / (devices * rate), "meets_target": True, **changes}
    return ThroughputPoint(name=f"{devices}", num_devices=devices, fits=True, **numbers)


def curve(*points: ThroughputPoint) -> Throughput:
    return Throughput(points=points, undecided=0)


SCALING = curve(point(8, None), point(64, 60.0), point(16, 100.0), point(32, 90.0))


@pytest.mark.parametrize(("least", "chosen"), [(1.0, 16), (0.9, 32), (0.8, 32), (0.6, 64), (0.0, 64)])
def test_more_devices_as_long_as_they_work(least: float, chosen: int) -> None:
    found = most_devices(SCALING, least)
    assert found is not None
    assert found.num_devices == chosen


def test_the_fewest_that_keep_the_target() -> None:
    slow = curve(point(8, None), point(16, 100.0, meets_target=False), point(32, 90.0), point(64, 60.0))
    found = fewest_devices(slow)
    assert found is not None
    assert found.num_devices == 32
    kept = most_devices(slow, 1.0)
    assert kept is not None
    assert kept.num_devices == 32


def test_nothing_fits() -> None:
    unknown = ThroughputPoint(name="8", num_devices=8, fits=None)
    for empty in (curve(), curve(point(8, None), unknown)):
        assert fewest_devices(empty) is None
        assert most_devices(empty) is None
