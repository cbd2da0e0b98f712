"""GPipe: what does each rank run?  All forwards, then all backwards (arXiv 1811.06965)."""

from __future__ import annotations

from planner.schedule.action import Action
from planner.schedule.orders.rank_script import RankScript


def rank_actions(rank: int, num_microbatches: int) -> tuple[Action, ...]:
    """Actions of ``rank``; it holds chunk ``rank`` and keeps all ``num_microbatches`` activations."""
    script = RankScript()
    for _ in range(num_microbatches):
        script.forward(rank)
    for _ in range(num_microbatches):
        script.backward(rank)
    return script.actions()
