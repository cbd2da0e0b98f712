"""1F1B: what does each rank run?  As few forwards as reach the last rank, then one forward, one backward.

Source: PipeDream-flush, arXiv 2104.04473 section 2.2.  Rank r warms up with p-1-r forwards, so it holds at most
min(m, p-r) activations.
"""

from __future__ import annotations

from planner.schedule.action import Action
from planner.schedule.orders.rank_script import RankScript


def rank_actions(rank: int, num_stages: int, num_microbatches: int) -> tuple[Action, ...]:
    """Actions of ``rank``, which holds chunk ``rank``."""
    script = RankScript()
    warmup = min(num_stages - 1 - rank, num_microbatches)
    for _ in range(warmup):
        script.forward(rank)
    for _ in range(num_microbatches - warmup):
        script.forward(rank)
        script.backward(rank)
    for _ in range(warmup):
        script.backward(rank)
    return script.actions()
