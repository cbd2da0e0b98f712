"""Interleaved 1F1B: what does each rank run?

Every rank holds ``vpp`` chunks (r, r+p, ...).  Micro-batches go in groups of ``g``: a group runs through the first
chunk, then the second, ...; backwards take the chunks from the last to the first.  The last group takes what is left.
Rank r warms up with 2(p-1-r) + (v-1)g forwards, then alternates forward and backward.
Source: arXiv 2104.04473 section 2.2; group size: Megatron-LM ``--microbatch-group-size-per-virtual-pipeline-stage``.
"""

from __future__ import annotations

from planner.schedule.action import Action, Kind


def warmup_forwards(rank: int, num_stages: int, vpp: int, num_microbatches: int, group: int) -> int:
    """Forwards (of one chunk) that ``rank`` runs before its first backward's partner: min(2(p-1-r) + (v-1)g, mv)."""
    return min(2 * (num_stages - 1 - rank) + (vpp - 1) * group, num_microbatches * vpp)


def visits(vpp: int, num_microbatches: int, group: int) -> list[tuple[int, int]]:
    """(local chunk, micro-batch) in forward order; a backward visits local chunk ``vpp-1-chunk`` instead."""
    table: list[tuple[int, int]] = []
    for first in range(0, num_microbatches, group):
        members = range(first, min(first + group, num_microbatches))
        table.extend((local, microbatch) for local in range(vpp) for microbatch in members)
    return table


def rank_actions(rank: int, num_stages: int, vpp: int, num_microbatches: int, group: int) -> tuple[Action, ...]:
    """Actions of ``rank``; ``group`` 0 means ``num_stages``."""
    group = group or num_stages
    table = visits(vpp, num_microbatches, group)
    forwards = [Action(Kind.FORWARD, rank + local * num_stages, mb) for local, mb in table]
    backwards = [Action(Kind.BACKWARD, rank + (vpp - 1 - local) * num_stages, mb) for local, mb in table]
    warmup = warmup_forwards(rank, num_stages, vpp, num_microbatches, group)
    actions = forwards[:warmup]
    for forward, backward in zip(forwards[warmup:], backwards, strict=False):
        actions += (forward, backward)
    actions += backwards[len(table) - warmup :]
    return tuple(actions)
