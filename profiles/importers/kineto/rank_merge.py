"""Collective times from the traces of one or of several ranks.

One rank: the kernel's duration, which includes waiting for the last rank: an upper bound (flag ``waiting-included``).
Several ranks: calls are matched by process group and sequence number, else by their order within the group; then

    time = max(end) - max(start)         where the ranks' clocks agree
    time = min over ranks of the duration    where they do not: the rank that came last waited least

Clocks agree when every rank had started before any ended, and the ends of a call lie close together (median over calls
at most 50 us or a fifth of the median time).  Point-to-point calls are matched the same way by their pair of ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from profiles.importers.kineto.collectives import CollectiveCall, GroupKey
from profiles.importing.duration_statistics import Durations
from profiles.observations.records import CollectiveOperation

_CLOSE_NS = 50_000
_CLOSE_SHARE = 0.2
_OVERLAPPING_SHARE = 0.99

How = str


@dataclass(frozen=True, slots=True)
class CollectiveKey:
    """What makes two collectives the same measurement."""

    operation: CollectiveOperation
    size_bytes: int
    dtype: str
    group_size: int | None
    ranks: tuple[int, ...]
    uneven: bool
    num_channels: int | None
    how: How


@dataclass(slots=True)
class CollectiveTimes:
    """Durations in ns by collective; ``how`` in the key says which rule gave them."""

    durations: dict[CollectiveKey, Durations] = field(default_factory=dict)
    rows: dict[CollectiveKey, int] = field(default_factory=dict)
    unmatched: int = 0

    def add(self, call: CollectiveCall, duration_ns: int, how: How) -> None:
        """Take one collective."""
        key = CollectiveKey(
            call.operation, call.size_bytes, call.dtype, call.group.size, call.group.ranks, call.uneven,
            call.num_channels, how,
        )  # fmt: skip
        if key not in self.durations:
            self.durations[key] = Durations()
            self.rows[key] = call.row
        self.durations[key].add(duration_ns)


def collective_times(calls_of_rank: dict[int, list[CollectiveCall]]) -> CollectiveTimes:
    """Times of all collectives of all ranks given."""
    times = CollectiveTimes()
    by_group: dict[tuple[GroupKey, object], dict[int, list[CollectiveCall]]] = defaultdict(dict)
    for rank, calls in calls_of_rank.items():
        for call in calls:
            by_group[(call.group, _pair(call))].setdefault(rank, []).append(call)
    for of_rank in by_group.values():
        if len(of_rank) == 1:
            for call in next(iter(of_rank.values())):
                times.add(call, call.end_ns - call.start_ns, "waiting-included")
        else:
            _merge_group(of_rank, times)
    return times


def _pair(call: CollectiveCall) -> object:
    return call.peers if call.operation == "send_recv" else None


def _merge_group(of_rank: dict[int, list[CollectiveCall]], times: CollectiveTimes) -> None:
    matched: list[list[CollectiveCall]] = []
    for together in _matched(of_rank):
        same = {(each.operation, each.size_bytes) for each in together}
        uneven = any(each.uneven for each in together)
        if len(together) == len(of_rank) and (len(same) == 1 or (uneven and len({name for name, _ in same}) == 1)):
            matched.append(together)
            continue
        times.unmatched += len(together)
        for call in together:
            times.add(call, call.end_ns - call.start_ns, "waiting-included")
    if not matched:
        return
    agree = _clocks_agree(matched)
    complete = matched[0][0].group.size in (None, len(of_rank)) or matched[0][0].operation == "send_recv"
    for together in matched:
        largest = max(together, key=lambda each: each.size_bytes)
        if agree:
            duration = max(each.end_ns for each in together) - max(each.start_ns for each in together)
            how = "ranks-merged" if complete else "ranks-missing"
        else:
            duration = min(each.end_ns - each.start_ns for each in together)
            how = "clocks-differ" if complete else "ranks-missing"
        if duration > 0:
            times.add(largest, duration, how)
        else:
            times.unmatched += 1


def _matched(of_rank: dict[int, list[CollectiveCall]]) -> Iterable[list[CollectiveCall]]:
    """Calls that belong together: by sequence number where every rank has unique ones, else by order."""
    for calls in of_rank.values():
        calls.sort(key=lambda each: each.start_ns)
    numbered = all(
        all(each.sequence is not None for each in calls) and len({_number(each) for each in calls}) == len(calls)
        for calls in of_rank.values()
    )
    found: dict[object, list[CollectiveCall]] = defaultdict(list)
    if numbered:
        for calls in of_rank.values():
            for call in calls:
                found[_number(call)].append(call)
        return found.values()
    counts = {len(calls) for calls in of_rank.values()}
    if len(counts) > 1:
        # Windows that differ cannot be aligned by counting; each call stays on its own.
        return [[call] for calls in of_rank.values() for call in calls]
    return [list(together) for together in zip(*of_rank.values(), strict=True)]


def _number(call: CollectiveCall) -> tuple[int | None, str]:
    """What counts a call: a send and its receive have one number."""
    return call.sequence, "" if call.operation == "send_recv" else call.called


def _clocks_agree(matched: list[list[CollectiveCall]]) -> bool:
    overlapping = sum(max(each.start_ns for each in calls) < min(each.end_ns for each in calls) for calls in matched)
    if overlapping < _OVERLAPPING_SHARE * len(matched):
        return False
    spread = median(max(each.end_ns for each in calls) - min(each.end_ns for each in calls) for calls in matched)
    typical = median(max(each.end_ns for each in calls) - max(each.start_ns for each in calls) for calls in matched)
    return spread <= max(_CLOSE_NS, _CLOSE_SHARE * typical)
