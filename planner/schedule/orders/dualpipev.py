"""DualPipeV: what does each rank run?  Two chunks in a V; a forward of one runs beside a backward of the other.

Rank r holds chunk r (down) and chunk 2p-1-r (up).  Phases (F forward, B full backward, I/W its two halves):

1. 2(p-r-1) F down;                       2. r+1 times F down, F up;
3. p-r-1 times I up, W, F up;             4. m-2p+r+1 times (F down, B up), (F up, B down);
5. p-r-1 times B up, (F up, B down);      6. r+1 times B up, B down, the second half of them as I (W kept back);
7. p-r-1 times W, I down;                 8. r+1 times W.

Pairs in brackets are meant to run at once (expert all-to-all of one under the compute of the other); the order lists
them one after the other, forward first.  A caller that models the overlap shortens the durations it passes on.
Source: DeepSeek DualPipe repository (README, DualPipeV), arXiv 2412.19437 section 3.2.1; the order is that of torch
``ScheduleDualPipeV``, whose OVERLAP_F_B is such a pair.
"""

from __future__ import annotations

from planner.schedule.action import Action
from planner.schedule.orders.rank_script import RankScript


def rank_actions(rank: int, num_stages: int, num_microbatches: int) -> tuple[Action, ...]:
    """Actions of ``rank``; needs ``num_microbatches >= 2 * num_stages``."""
    down, up = rank, 2 * num_stages - 1 - rank
    after = num_stages - 1 - rank
    script = RankScript()
    for _ in range(2 * after):
        script.forward(down)
    for _ in range(rank + 1):
        script.forward(down)
        script.forward(up)
    for _ in range(after):
        script.input_gradient(up)
        script.weight_gradient()
        script.forward(up)
    for _ in range(num_microbatches - 2 * num_stages + rank + 1):
        _pair(script, down, up)
        _pair(script, up, down)
    for _ in range(after):
        script.backward(up)
        _pair(script, up, down)
    _last_backwards(script, rank, down, up)
    for _ in range(after):
        script.weight_gradient()
        script.input_gradient(down)
    script.weight_gradient(rank + 1)
    return script.actions()


def _pair(script: RankScript, forward_chunk: int, backward_chunk: int) -> None:
    script.forward(forward_chunk)
    script.backward(backward_chunk)


def _last_backwards(script: RankScript, rank: int, down: int, up: int) -> None:
    """Phase 6: 2(r+1) backwards, up and down in turn; the last r+1 of them are split."""
    for turn in range(2 * (rank + 1)):
        chunk = down if turn % 2 else up
        if turn > rank:
            script.input_gradient(chunk)
        else:
            script.backward(chunk)
