"""Which rows of a curve to search further, and why a larger allocation is slower than a smaller one.

A scheduler compares neighbouring rows, so a gap of one of them counts as much as what it would gain.  Rows that are
slower than a smaller allocation of the same cluster come first, then those of the largest gap; what is proved, or left
open by no more than ``CLOSE_ENOUGH``, is not searched again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.answers.throughput.curve import ThroughputPoint

CLOSE_ENOUGH = 0.01
"""Gap that is left: how near to its own optimum the answer of a back-end beside the fastest is, too."""
LEAST_S = 0.05
"""No search of a whole space is worth starting for less."""


def worth_closing(points: Sequence[ThroughputPoint], parts: Collection[int], over: Collection[int]) -> list[int]:
    """Places of the rows whose gap is to be closed, the most urgent first.

    ``parts``: rows that are parts of one cluster; ``over``: rows that no more time makes any better.
    """
    wide = [at for at, point in enumerate(points) if (point.gap or 0.0) > CLOSE_ENOUGH and at not in over]
    return sorted(wide, key=lambda at: (_faster_part(points, parts, at) is None, -(points[at].gap or 0.0)))


def shares_s(waiting: int, left_s: float, beside: int = 1) -> float:
    """What each of the rows that wait may take, where ``beside`` of them run at once."""
    return left_s * min(beside, waiting) / waiting


def with_reasons(points: Sequence[ThroughputPoint], parts: Collection[int]) -> tuple[ThroughputPoint, ...]:
    """The rows, those that are slower than a smaller part of their cluster with the reason."""
    told = []
    for at, point in enumerate(points):
        faster = _faster_part(points, parts, at)
        told.append(point if faster is None else point.model_copy(update={"slower": _why(point, points[faster])}))
    return tuple(told)


def _faster_part(points: Sequence[ThroughputPoint], parts: Collection[int], at: int) -> int | None:
    """The fastest smaller part of the same cluster, where it is faster."""
    own = points[at]
    if at not in parts or own.step_time_s is None:
        return None
    smaller = [
        (point.step_time_s, place)
        for place, point in enumerate(points)
        if place in parts and point.num_devices < own.num_devices and point.step_time_s is not None
    ]
    step_time_s, place = min(smaller, default=(float("inf"), at))
    return place if step_time_s < own.step_time_s else None


def _why(point: ThroughputPoint, faster: ThroughputPoint) -> str:
    """``point`` is slower than ``faster``, which has fewer devices."""
    bound_s, fewer = point.lower_bound_s, f"{faster.num_devices:,} devices"
    if bound_s is not None and faster.step_time_s is not None and bound_s > faster.step_time_s:
        return (
            f"no plan that uses all {point.num_devices:,} devices is as fast as that of {fewer}: the batch, the layers"
            " and the heads divide among them less evenly, or their network is slower"
        )
    return f"slower than {fewer}; a faster plan is not ruled out, and was not found within the budget"
