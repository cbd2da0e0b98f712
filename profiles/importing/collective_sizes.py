"""The size of the full logical tensor, where a tool prints the part of one rank.

Tools of the MPI family (OSU, IMB, UCC) print the contribution of one rank for gathering operations and the piece for
one peer for all_to_all; the convention here is the whole tensor (``profiles.observations.records``):

    all_gather, gather, scatter, all_to_all    size x ranks
    all_reduce, broadcast, reduce, send_recv   size

reduce_scatter differs from tool to tool and is therefore never converted here.
"""

from __future__ import annotations

from profiles.observations.records import CollectiveOperation

PER_RANK: frozenset[str] = frozenset({"all_gather", "gather", "scatter", "all_to_all"})
"""Operations whose printed size is one rank's part."""

GROUP_SIZE_HINT = "say how many ranks took part: --set group_size=N"


def full_tensor_bytes(operation: CollectiveOperation, printed_bytes: int, group_size: int | None) -> int | None:
    """Bytes of the full tensor; None where the group size is needed and not known."""
    if operation not in PER_RANK:
        return printed_bytes
    return None if group_size is None else printed_bytes * group_size
