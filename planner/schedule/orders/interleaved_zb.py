"""Interleaved zero bubble: what does each rank run?  ZB-H1 over several chunks a rank.

Forwards and input gradients visit chunks and micro-batch groups as interleaved 1F1B does (``interleaved.visits``), but
rank r warms up with p-1-r forwards beyond the (v-1)g of the last rank, one a hop instead of two, because an input
gradient alone comes back sooner; it keeps r weight gradients back and fills the end of the step with them.
With one chunk a rank this is ZB-H1.
Source: arXiv 2401.10241 section 2.3; the order is that of torch ``ScheduleInterleavedZeroBubble``.
"""

from __future__ import annotations

from planner.schedule.action import Action
from planner.schedule.orders.interleaved import visits
from planner.schedule.orders.rank_script import RankScript


def rank_actions(rank: int, num_stages: int, vpp: int, num_microbatches: int, group: int) -> tuple[Action, ...]:
    """Actions of ``rank``; ``group`` 0 means ``num_stages``."""
    group = group or num_stages
    table = visits(vpp, num_microbatches, group)
    forwards = [rank + local * num_stages for local, _ in table]
    gradients = [rank + (vpp - 1 - local) * num_stages for local, _ in table]
    warmup = min((vpp - 1) * group + num_stages - 1 - rank, len(table))
    script = RankScript()
    for chunk in forwards[:warmup]:
        script.forward(chunk)
    for step, chunk in enumerate(gradients):
        if step < len(table) - warmup:
            script.forward(forwards[warmup + step])
        script.input_gradient(chunk)
        if step >= rank:
            script.weight_gradient()
    script.weight_gradient(len(table))
    return script.actions()
