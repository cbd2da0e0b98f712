"""Looped BFS: what does each rank run?  All micro-batches through its first chunk, then all through the next.

Every rank holds ``vpp`` chunks (r, r+p, ...), like interleaved 1F1B, but goes breadth first: the forwards of all
micro-batches chunk by chunk, then the backwards from the last chunk to the first and from the last micro-batch to the
first.  It keeps every activation, as GPipe does, and gathers or reduces each chunk's parameters once a step.
Source: arXiv 2211.05953 section 4; the order of backwards is that of torch ``ScheduleLoopedBFS``.
"""

from __future__ import annotations

from planner.schedule.action import Action, Kind


def rank_actions(rank: int, num_stages: int, vpp: int, num_microbatches: int) -> tuple[Action, ...]:
    """Actions of ``rank``."""
    chunks = range(rank, num_stages * vpp, num_stages)
    microbatches = range(num_microbatches)
    forwards = [Action(Kind.FORWARD, chunk, mb) for chunk in chunks for mb in microbatches]
    backwards = [Action(Kind.BACKWARD, chunk, mb) for chunk in reversed(chunks) for mb in reversed(microbatches)]
    return (*forwards, *backwards)
