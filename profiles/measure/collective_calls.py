"""Each rank's call for one collective of one size: the tensors of ``torch.distributed``, filled with numbers.

Sizes are full logical tensors (``profiles.observations.records``): all_gather the output, reduce_scatter the input,
all_to_all what one rank sends.  Element counts are rounded up to a multiple of the group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from profiles.measure.grouped_matmul import POWER
from profiles.measure.kind import DTYPE_BYTES
from profiles.measure.ranks import RankGroup, Ranks
from profiles.observations.records import CollectiveOperation

Variant = Literal["", "one_way", "both_ways", "even", "skewed"]
OPERATIONS: tuple[tuple[CollectiveOperation, Variant], ...] = (
    ("all_reduce", ""),
    ("all_gather", ""),
    ("reduce_scatter", ""),
    ("all_to_all", "even"),
    ("all_to_all", "skewed"),
    ("broadcast", ""),
    ("send_recv", "one_way"),
    ("send_recv", "both_ways"),
)
"""Operation and variant.  send_recv runs between the two ranks of groups of two."""


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """A prepared collective: ``start`` submits it and returns what to wait for, ``run`` also waits."""

    start: Callable[[], list[Any]]
    run: Callable[[], object]
    restore: Callable[[], None]
    """Fresh numbers: sums of sums would overflow."""


def num_elements(size_bytes: int, dtype: str, group_size: int) -> int:
    """Elements of the logical tensor: at least ``size_bytes``, a multiple of the group."""
    wanted = -(-size_bytes // DTYPE_BYTES[dtype])
    return -(-wanted // group_size) * group_size


def skewed_splits(total: int, group_size: int) -> list[int]:
    """Elements for each receiver, proportional to rank^-POWER: the first expert is the most wanted one."""
    weights = [(rank + 1) ** -POWER for rank in range(group_size)]
    bounds = [round(total * part / sum(weights)) for part in accumulate(weights)]
    return [high - low for low, high in zip([0, *bounds], bounds, strict=False)]


def prepare_collective(
    ranks: Ranks, mine: RankGroup, operation: str, variant: str, elements: int, dtype: str
) -> CollectiveCall:
    """The call of this rank in its group."""
    distributed, group = ranks.communication, mine.handle
    own = elements // len(mine.members)
    whole, part = ranks.device.normal((elements,), dtype), ranks.device.normal((own,), dtype)
    if operation == "all_reduce":
        kept = whole.clone()
        return _call(lambda **how: distributed.all_reduce(whole, group=group, **how), lambda: whole.copy_(kept))
    if operation == "all_gather":
        # torch 2.13 renamed both: the older names warn.
        gather = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
        return _call(lambda **how: gather(whole, part, group=group, **how))
    if operation == "reduce_scatter":
        scatter = getattr(distributed, "reduce_scatter_single", None) or distributed.reduce_scatter_tensor
        return _call(lambda **how: scatter(part, whole, group=group, **how))
    if operation == "broadcast":
        return _call(lambda **how: distributed.broadcast(whole, src=mine.members[0], group=group, **how))
    if operation == "all_to_all":
        return _all_to_all(ranks, mine, variant, whole)
    if operation == "send_recv":
        return _pair(ranks, mine, variant, whole)
    raise NotImplementedError(f"{operation} is not measured")


def _call(issue: Callable[..., Any], restore: Callable[[], object] | None = None) -> CollectiveCall:
    def again() -> None:
        if restore is not None:
            restore()

    return CollectiveCall(lambda: [issue(async_op=True)], issue, again)


def _all_to_all(ranks: Ranks, mine: RankGroup, variant: str, whole: Any) -> CollectiveCall:
    distributed, group, size = ranks.communication, mine.handle, len(mine.members)
    if variant == "even":
        received = whole.clone()
        return _call(lambda **how: distributed.all_to_all_single(received, whole, group=group, **how))
    sent = skewed_splits(whole.numel(), size)
    taken = [sent[mine.place]] * size
    received = whole.new_empty(sum(taken))
    return _call(lambda **how: distributed.all_to_all_single(received, whole, taken, sent, group=group, **how))


def _pair(ranks: Ranks, mine: RankGroup, variant: str, whole: Any) -> CollectiveCall:
    """``one_way``: the first sends, the second receives; ``both_ways``: both do both, whole bytes each way."""
    distributed, group = ranks.communication, mine.handle
    first = mine.place == 0
    other = mine.members[1 - mine.place]
    received = whole.clone()
    sends, receives = first or variant == "both_ways", not first or variant == "both_ways"

    def start() -> list[Any]:
        calls = []
        if sends:
            calls.append(distributed.P2POp(distributed.isend, whole, other, group))
        if receives:
            calls.append(distributed.P2POp(distributed.irecv, received, other, group))
        found: list[Any] = distributed.batch_isend_irecv(calls)
        return found

    def run() -> None:
        for work in start():
            work.wait()

    return CollectiveCall(start, run, lambda: None)
