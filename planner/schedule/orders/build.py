"""What does every rank of a pipeline run, and in which order?"""

from __future__ import annotations

from planner.schedule.action import Action, Order
from planner.schedule.orders import (
    dualpipev,
    gpipe,
    interleaved,
    interleaved_zb,
    looped_bfs,
    one_f_one_b,
    zb_h1,
    zbv,
)
from planner.schedule.orders.legality import check_order_inputs
from planner.strategy import ScheduleName


def build_order(
    schedule: ScheduleName, num_stages: int, vpp: int, num_microbatches: int, microbatch_group_size: int = 0
) -> Order:
    """One tuple of actions a rank.

    ``microbatch_group_size`` is for ``GROUPED_SCHEDULES`` alone; 0 means ``num_stages``.  Raises ``DocumentInvalid``
    with all findings when the sizes are not legal (``legality.order_findings``).
    """
    check_order_inputs(schedule, num_stages, vpp, num_microbatches, microbatch_group_size)
    return tuple(
        _rank_actions(schedule, rank, num_stages, vpp, num_microbatches, microbatch_group_size)
        for rank in range(num_stages)
    )


def _rank_actions(
    schedule: ScheduleName, rank: int, num_stages: int, vpp: int, num_microbatches: int, group: int
) -> tuple[Action, ...]:
    match schedule:
        case "gpipe":
            return gpipe.rank_actions(rank, num_microbatches)
        case "1f1b":
            return one_f_one_b.rank_actions(rank, num_stages, num_microbatches)
        case "interleaved":
            return interleaved.rank_actions(rank, num_stages, vpp, num_microbatches, group)
        case "zb_h1":
            return zb_h1.rank_actions(rank, num_stages, num_microbatches)
        case "zbv":
            return zbv.rank_actions(rank, num_stages, num_microbatches)
        case "dualpipev":
            return dualpipev.rank_actions(rank, num_stages, num_microbatches)
        case "looped_bfs":
            return looped_bfs.rank_actions(rank, num_stages, vpp, num_microbatches)
        case "interleaved_zb":
            return interleaved_zb.rank_actions(rank, num_stages, vpp, num_microbatches, group)
