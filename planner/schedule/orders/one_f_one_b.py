"""1F1B: what does each rank run?  As few forwards as reach the last rank, then one forward, one backward.

Source: PipeDream-flush, arXiv 2104.04473 section 2.2.  Rank r warms up with p-1-r forwards, so it holds at most
min(m, p-r) activations.
"""

from __future__ import annotations

from itertools import chain

from planner.schedule.action import Action, Kind


def rank_actions(rank: int, num_stages: int, num_microbatches: int) -> tuple[Action, ...]:
    """Actions of ``rank``, which holds chunk ``rank``."""
    warmup = min(num_stages - 1 - rank, num_microbatches)
    forwards = [Action(Kind.FORWARD, rank, microbatch) for microbatch in range(num_microbatches)]
    backwards = [Action(Kind.BACKWARD, rank, microbatch) for microbatch in range(num_microbatches)]
    steady = chain.from_iterable(zip(forwards[warmup:], backwards, strict=False))
    return (*forwards[:warmup], *steady, *backwards[num_microbatches - warmup :])
