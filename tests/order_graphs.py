"""Compiled orders of schedules."""

from __future__ import annotations

from functools import lru_cache

from planner.predict.schedule.dependencies import OrderGraph, order_graph
from planner.predict.schedule.orders.build import build_order
from planner.strategy.schedules import ScheduleName


@lru_cache(maxsize=32)
def cached_graph(
    schedule: ScheduleName, num_stages: int, vpp: int, num_microbatches: int, microbatch_group_size: int = 0
) -> OrderGraph:
    """The compiled order of a schedule, remembered: it depends on sizes alone, not on durations."""
    return order_graph(build_order(schedule, num_stages, vpp, num_microbatches, microbatch_group_size))
