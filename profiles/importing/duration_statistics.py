"""Median, 10th and 90th percentile of many durations: a trace is reduced to one ``Timing`` per kernel.

Percentiles interpolate between neighbours (position ``q (n - 1)`` in sorted order), the convention of NumPy's default.
Durations are kept as whole nanoseconds or picoseconds in a compact array: eight bytes each.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from profiles.observations.timing import Timing


class Durations:
    """Durations of one kernel in ticks (ns, ps), added one by one."""

    __slots__ = ("_ticks",)

    def __init__(self, ticks: Iterable[int] = ()) -> None:
        self._ticks = array("q", ticks)

    def __len__(self) -> int:
        return len(self._ticks)

    def add(self, ticks: int) -> None:
        """Add one duration.  Raises OverflowError beyond 2^63 ticks."""
        self._ticks.append(ticks)

    def extend(self, others: Durations) -> None:
        """Add all durations of another collection."""
        self._ticks.extend(others._ticks)

    def timing(self, ticks_per_s: float) -> Timing:
        """Median with percentiles; ``single`` for one duration.  Raises ValueError where the median is zero."""
        ordered = sorted(self._ticks)
        if len(ordered) == 1:
            return Timing(ordered[0] / ticks_per_s, statistic="single", num_samples=1)
        return Timing(
            time_s=_percentile(ordered, 0.5) / ticks_per_s,
            statistic="median",
            num_samples=len(ordered),
            min_s=ordered[0] / ticks_per_s,
            p10_s=_percentile(ordered, 0.1) / ticks_per_s,
            p90_s=_percentile(ordered, 0.9) / ticks_per_s,
            max_s=ordered[-1] / ticks_per_s,
        )


def _percentile(ordered: list[int], quantile: float) -> float:
    position = quantile * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
