"""ZB-V: what does each rank run?  Two chunks in a V, weight gradients split off, no bubble when F = I = W.

Rank r holds chunk r (going down) and chunk 2p-1-r (coming back up).  Phases:

1. 2(p-r)-1 forwards of the down chunk;
2. r times: forward up, forward down;
3. p-r times: forward, input and weight gradient of the up chunk;
4. while forwards are left: forward, input and weight gradient of the down chunk, then the same of the up chunk;
5. r times: input gradient down, input gradient up (weight gradients kept back);
6. p-r times: input gradient of the down chunk and its oldest weight gradient;
7. what was kept back, up chunk first.

The pattern needs 2p-1 micro-batches; fewer are the same order with the missing ones left out.
Source: arXiv 2401.10241 section 6 and its order as in torch ``ScheduleZBVZeroBubble``.
"""

from __future__ import annotations

from planner.schedule.action import Action
from planner.schedule.orders.rank_script import RankScript


def rank_actions(rank: int, num_stages: int, num_microbatches: int) -> tuple[Action, ...]:
    """Actions of ``rank``."""
    down, up = rank, 2 * num_stages - 1 - rank
    pattern = max(num_microbatches, 2 * num_stages - 1)
    script = RankScript()
    for _ in range(2 * (num_stages - rank) - 1):
        script.forward(down)
    for _ in range(rank):
        script.forward(up)
        script.forward(down)
    for _ in range(num_stages - rank):
        _forward_and_gradients(script, up)
    for step in range(pattern - num_stages):
        if step < pattern - 2 * num_stages + rank + 1:
            script.forward(down)
        script.input_gradient(down)
        script.weight_gradient()
        _forward_and_gradients(script, up)
    for _ in range(rank):
        script.input_gradient(down)
        script.input_gradient(up)
    for _ in range(num_stages - rank):
        script.input_gradient(down)
        script.weight_gradients_of(down, 1)
    script.weight_gradients_of(up)
    script.weight_gradients_of(down)
    return script.first_microbatches(num_microbatches)


def _forward_and_gradients(script: RankScript, chunk: int) -> None:
    script.forward(chunk)
    script.input_gradient(chunk)
    script.weight_gradient()
