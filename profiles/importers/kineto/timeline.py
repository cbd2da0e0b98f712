"""Device use over the span of the trace: busy time, communication, their overlap, and gaps.

    span = end of the last device activity - start of the first        busy = length of the union of all activities
    gaps = 1 - busy / span          overlap = |communication and compute at once| / |communication|

Copies and memsets are activities but neither compute nor communication.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Activity = Literal["compute", "communication", "copy"]
Interval = tuple[int, int]


@dataclass(slots=True)
class DeviceUse:
    """Shares of one rank's span."""

    span_s: float
    busy_fraction: float
    communication_fraction: float
    overlap_fraction: float | None


@dataclass(slots=True)
class Timeline:
    """Device activities of one rank, in ns."""

    _intervals: dict[Activity, list[Interval]] = field(default_factory=dict)
    overhead_ns: int = 0

    def add(self, activity: Activity, start_ns: int, end_ns: int) -> None:
        """Take one activity."""
        self._intervals.setdefault(activity, []).append((start_ns, end_ns))

    def use(self) -> DeviceUse | None:
        """The shares; None without any device activity."""
        compute = union(self._intervals.get("compute", []))
        communication = union(self._intervals.get("communication", []))
        everything = union([*compute, *communication, *self._intervals.get("copy", [])])
        if not everything:
            return None
        span = everything[-1][1] - everything[0][0]
        if span <= 0:
            return None
        moving = length(communication)
        both = length(compute) + moving - length(union([*compute, *communication]))
        return DeviceUse(
            span_s=span * 1e-9,
            busy_fraction=length(everything) / span,
            communication_fraction=moving / span,
            overlap_fraction=both / moving if moving else None,
        )


def union(intervals: list[Interval]) -> list[Interval]:
    """Times in which at least one of the intervals runs, in order, without overlaps."""
    result: list[Interval] = []
    for start, end in sorted(intervals):
        if result and start <= result[-1][1]:
            if end > result[-1][1]:
                result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return result


def length(intervals: list[Interval]) -> int:
    """Sum of the durations."""
    return sum(end - start for start, end in intervals)
