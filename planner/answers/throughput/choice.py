"""The allocation that a job should get: two rules that schedulers use, on a throughput curve."""

from __future__ import annotations

from planner.answers.throughput.curve import Throughput, ThroughputPoint


def fewest_devices(curve: Throughput) -> ThroughputPoint | None:
    """The smallest allocation that fits and keeps the question's target of time or rate; None = there is none."""
    good = [point for point in curve.points if point.fits and point.meets_target]
    return min(good, key=lambda point: (point.num_devices, point.step_time_s), default=None)


def most_devices(curve: Throughput, least_efficiency: float = 0.8) -> ThroughputPoint | None:
    """The largest allocation whose tokens a second a device stay above a part of the best one's; None = nothing fits.

    So a job gets more devices as long as they work: ``least_efficiency`` 1 = the most efficient, 0 = all.
    """
    good = [point for point in curve.points if point.fits and point.meets_target]
    best = max((point.tokens_per_s_per_device or 0.0 for point in good), default=0.0)
    kept = [point for point in good if (point.tokens_per_s_per_device or 0.0) >= least_efficiency * best]
    return max(kept, key=lambda point: (point.num_devices, -(point.step_time_s or 0.0)), default=None)
