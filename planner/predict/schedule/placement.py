"""The pipeline rank that holds each model chunk."""

from __future__ import annotations

from planner.strategy.schedules import V_SCHEDULES, ScheduleName


def chunk_ranks(schedule: ScheduleName, num_stages: int, vpp: int) -> tuple[int, ...]:
    """Rank of every chunk, in model order (length ``num_stages * vpp``).

    Loop placement ``chunk % num_stages`` (arXiv 2104.04473); V schedules go down the ranks and back up, so rank r
    holds chunks r and 2*num_stages-1-r (arXiv 2401.10241, section 6).
    """
    if schedule in V_SCHEDULES:
        return tuple(range(num_stages)) + tuple(range(num_stages - 1, -1, -1))
    return tuple(chunk % num_stages for chunk in range(num_stages * vpp))
