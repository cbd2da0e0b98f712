"""ZB-H1: what does each rank run?  1F1B with the weight gradient split off and put where 1F1B would idle.

Forwards and input gradients come in the order of 1F1B; rank r keeps r weight gradients back, so every rank holds
min(m, p) activations, as many as rank 0 of 1F1B does, and fills the end of the step with the ones kept back.
Source: arXiv 2401.10241 section 2.3 (named ZB1P in torch, with one chunk a rank).
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
    for step in range(num_microbatches):
        if step < num_microbatches - warmup:
            script.forward(rank)
        script.input_gradient(rank)
        if step >= rank:
            script.weight_gradient()
    script.weight_gradient(num_microbatches)
    return script.actions()
