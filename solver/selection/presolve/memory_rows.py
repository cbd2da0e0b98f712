"""The times at which the capacity can bind: the rows that a solver must keep, exactly.

(1) A row is a time just before something ends and after something began (``_peaks``): the live set of every other time
    is contained in that of a row.
(2) Per row, the least and the most that all classes together can use (``row_extremes``): a row whose most fits is
    dropped; one whose least does not fit proves that nothing is feasible (``row_shortage``).
(3) Row t is implied by a kept row r where  sum over classes of max_v (usage_t(v) - usage_r(v)) <= slack_t - slack_r
    (``drop_implied``): whoever keeps r within its slack keeps t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Ints
from solver.selection.kernel import FLAGS, INT, INTS, NOTHING, kernel
from solver.selection.presolve.classes import Classes, offsets
from solver.selection.problem import SelectionProblem
from solver.selection.reduced import MEMORY, Memory

PATIENCE = 80
"""How many rows in a row may resist before the walk from a kept row ends."""

LARGEST_WORK = 2_000_000_000
"""Where the search for implied rows ends: what is left is kept, which is always right."""


@kernel(NOTHING(INTS, INTS, INTS, INTS, INTS))
def add_usages(option_segment: Ints, option_value: Ints, usages: Ints, seg_start: Ints, seg_usage: Ints) -> None:
    """Add each option's usage to its segment's table (segment -1: none; value -1: dead)."""
    for j in range(usages.size):
        s = option_segment[j]
        if s >= 0 and option_value[j] >= 0:
            seg_usage[seg_start[s] + option_value[j]] += usages[j]


@kernel(NOTHING(INTS, INTS, INTS, MEMORY, INTS, INTS))
def row_extremes(event_start: Ints, event_segment: Ints, start: Ints, memory: Memory, least: Ints, most: Ints) -> None:
    """Per row, the sums over classes of the least and the largest usage; event_segment < 0 means -1 - segment ends."""
    now = np.zeros(start[-1], np.int64)
    low = np.zeros(start.size, np.int64)
    high = np.zeros(start.size, np.int64)
    least_sum, most_sum = 0, 0
    for r in range(least.size):
        for q in range(event_start[r], event_start[r + 1]):
            s = event_segment[q]
            sign = 1
            if s < 0:
                s = -1 - s
                sign = -1
            c = memory.seg_class[s]
            smallest, largest = np.int64(2**62), np.int64(-(2**62))
            for v in range(start[c + 1] - start[c]):
                now[start[c] + v] += sign * memory.seg_usage[memory.seg_start[s] + v]
                smallest = min(smallest, now[start[c] + v])
                largest = max(largest, now[start[c] + v])
            least_sum += smallest - low[c]
            most_sum += largest - high[c]
            low[c], high[c] = smallest, largest
        least[r], most[r] = least_sum, most_sum


@kernel(INT(MEMORY, INT, INT, INTS, INTS))
def shift_class(memory: Memory, s: int, sign: int, start: Ints, difference: Ints) -> int:
    """Add a segment's usage, with this sign, to its class's entries; their new maximum."""
    c = memory.seg_class[s]
    largest = np.int64(-(2**62))
    for v in range(start[c + 1] - start[c]):
        difference[start[c] + v] += sign * memory.seg_usage[memory.seg_start[s] + v]
        largest = max(largest, difference[start[c] + v])
    return int(largest)


@kernel(NOTHING(INTS, INTS, INTS, MEMORY, INTS, FLAGS, INT, INT))
def drop_implied(
    event_start: Ints,
    event_segment: Ints,
    start: Ints,
    memory: Memory,
    order: Ints,
    kept: NDArray[np.bool_],
    patience: int,
    largest_work: int,
) -> None:
    """Walk from each kept row both ways and clear ``kept`` of the rows that it implies."""
    num_rows = kept.size
    difference = np.zeros(start[-1], np.int64)
    highest = np.zeros(start.size, np.int64)
    touched = np.zeros(start.size, np.int64)
    is_touched = np.zeros(start.size, np.bool_)
    work = 0
    for r in order:
        if not kept[r]:
            continue
        for direction in (1, -1):
            total, resisted, t, count = 0, 0, r, 0
            while work < largest_work:
                if direction == 1:
                    t += 1
                    boundary = t
                    if t >= num_rows:
                        break
                else:
                    boundary = t
                    t -= 1
                    if t < 0:
                        break
                for q in range(event_start[boundary], event_start[boundary + 1]):
                    s = event_segment[q] if event_segment[q] >= 0 else -1 - event_segment[q]
                    sign = direction if event_segment[q] >= 0 else -direction
                    c = memory.seg_class[s]
                    work += start[c + 1] - start[c]
                    largest = shift_class(memory, s, sign, start, difference)
                    total += largest - highest[c]
                    highest[c] = largest
                    if not is_touched[c]:
                        is_touched[c] = True
                        touched[count] = c
                        count += 1
                if total <= memory.slack[t] - memory.slack[r]:
                    kept[t] = False
                    resisted = 0
                else:
                    resisted += 1
                    if resisted > patience:
                        break
            for q in range(count):
                c = touched[q]
                is_touched[c] = False
                highest[c] = 0
                difference[start[c] : start[c + 1]] = 0


def node_memory(problem: SelectionProblem) -> tuple[Memory, Ints, Ints]:
    """The problem's usage as segments of nodes over all rows, and when each row begins and ends."""
    first, usages = problem.option_start[:-1], problem.usages
    if problem.capacity is None or usages.size == 0:
        return no_memory(problem.num_nodes), np.zeros(0, np.int64), np.zeros(0, np.int64)
    peaks = np.maximum.reduceat(usages, first)
    using = (problem.live_from < problem.live_until) & (peaks > 0)
    times, ends = _peaks(problem.live_from[using], problem.live_until[using])
    low, high = np.searchsorted(times, problem.live_from), np.searchsorted(times, problem.live_until)
    nodes = np.flatnonzero(using & (high > low))
    seg_start = offsets(problem.option_counts[nodes])
    options = np.repeat(using & (high > low), problem.option_counts)
    class_seg = np.searchsorted(nodes, np.arange(problem.num_nodes + 1)).astype(np.int64)
    slack = np.full(times.size, problem.capacity, np.int64)
    return Memory(nodes, low[nodes], high[nodes], seg_start, usages[options], class_seg, slack), times, ends


def no_memory(num_classes: int) -> Memory:
    """Nothing limits anything."""
    nothing = np.zeros(0, np.int64)
    starts = (np.zeros(1, np.int64), nothing, np.zeros(num_classes + 1, np.int64))
    return Memory(nothing, nothing, nothing, *starts, nothing)


def class_memory(memory: Memory, classes: Classes) -> Memory:
    """The segments of nodes as segments of their classes; nodes of one class over the same rows add up."""
    sizes = np.diff(memory.seg_start)
    node_first = offsets(classes.option_counts)
    option = np.arange(memory.seg_usage.size, dtype=np.int64) - np.repeat(memory.seg_start[:-1], sizes)
    value = classes.node_value[np.repeat(node_first[memory.seg_class], sizes) + option]
    owner = classes.node_class[memory.seg_class]
    everything = np.ones(memory.slack.size, np.bool_)
    return normalised(_regrouped(memory, owner, value, everything, classes.sizes))


def binding_rows(memory: Memory, sizes: Ints, thorough: bool = True) -> tuple[Memory, NDArray[np.bool_]]:
    """The same limits in as few rows as can be, and which rows those are; ``row_shortage`` has passed before."""
    start = offsets(sizes)
    everything = np.ones(memory.slack.size, np.bool_)
    if memory.slack.size == 0:
        return memory, everything
    least, most = np.zeros(memory.slack.size, np.int64), np.zeros(memory.slack.size, np.int64)
    row_extremes(*_events(memory), start, memory, least, most)
    kept = most > memory.slack
    fewer = keep_rows(memory, kept)
    if thorough and fewer.slack.size:
        excess = (most[kept] - fewer.slack) / np.maximum(1, fewer.slack)
        needed = np.ones(fewer.slack.size, np.bool_)
        order = np.argsort(-excess, kind="stable")
        drop_implied(*_events(fewer), start, fewer, order, needed, PATIENCE, LARGEST_WORK)
        fewer = keep_rows(fewer, needed)
        kept[kept] = needed
    return normalised(fewer), kept


def row_shortage(memory: Memory, sizes: Ints) -> tuple[int, int] | None:
    """The row that overflows most even at the least usage of every class, and by how much; None where all fit."""
    if memory.slack.size == 0:
        return None
    least, most = np.zeros(memory.slack.size, np.int64), np.zeros(memory.slack.size, np.int64)
    row_extremes(*_events(memory), offsets(sizes), memory, least, most)
    worst = int(np.argmax(least - memory.slack))
    missing = int(least[worst] - memory.slack[worst])
    return (worst, missing) if missing > 0 else None


def _peaks(live_from: Ints, live_until: Ints) -> tuple[Ints, Ints]:
    """Where each row begins and ends: from a last beginning until the first end after it."""
    moments = np.concatenate([live_until, live_from])
    is_begin = np.repeat([False, True], live_from.size)
    order = np.lexsort((is_begin, moments))
    moments, is_begin = moments[order], is_begin[order]
    turn = np.flatnonzero(is_begin[:-1] & ~is_begin[1:])
    return moments[turn], moments[turn + 1]


def _regrouped(memory: Memory, owner: Ints, value: Ints, kept: NDArray[np.bool_], sizes: Ints) -> Memory:
    """Segments of new owners over the kept rows; ``value`` maps each entry of ``seg_usage`` (-1: dead)."""
    position = offsets(kept.astype(np.int64))
    low, high = position[memory.seg_lo], position[memory.seg_hi]
    alive = high > low
    span = position[-1] + 1
    keys = ((owner * span + low) * span + high)[alive]
    distinct, group = np.unique(keys, return_inverse=True)
    rest, new_high = np.divmod(distinct, span)
    new_owner, new_low = np.divmod(rest, span)
    segment = np.full(alive.size, -1, np.int64)
    segment[alive] = group
    seg_start = offsets(sizes[new_owner])
    seg_usage = np.zeros(int(seg_start[-1]), np.int64)
    add_usages(np.repeat(segment, np.diff(memory.seg_start)), value, memory.seg_usage, seg_start, seg_usage)
    class_seg = np.searchsorted(new_owner, np.arange(sizes.size + 1)).astype(np.int64)
    return Memory(new_owner, new_low, new_high, seg_start, seg_usage, class_seg, memory.slack[kept])


def keep_rows(memory: Memory, kept: NDArray[np.bool_]) -> Memory:
    """The same segments over fewer rows; segments over none are dropped, those over the same rows added up."""
    sizes = np.diff(memory.seg_start)
    value = np.arange(memory.seg_usage.size, dtype=np.int64) - np.repeat(memory.seg_start[:-1], sizes)
    owner_sizes = np.ones(memory.class_seg.size - 1, np.int64)
    owner_sizes[memory.seg_class] = sizes
    return _regrouped(memory, memory.seg_class, value, kept, owner_sizes)


def normalised(memory: Memory) -> Memory:
    """Every segment's least usage becomes 0, paid from the slack of its rows; constant segments are dropped."""
    if memory.seg_class.size == 0:
        return memory
    sizes = np.diff(memory.seg_start)
    least = np.minimum.reduceat(memory.seg_usage, memory.seg_start[:-1])
    used = np.zeros(memory.slack.size + 1, np.int64)
    np.add.at(used, memory.seg_lo, least)
    np.subtract.at(used, memory.seg_hi, least)
    usage, slack = memory.seg_usage - np.repeat(least, sizes), memory.slack - np.cumsum(used)[:-1]
    varies = np.maximum.reduceat(usage, memory.seg_start[:-1]) > 0
    owners = memory.seg_class[varies]
    return Memory(
        owners,
        memory.seg_lo[varies],
        memory.seg_hi[varies],
        offsets(sizes[varies]),
        usage[np.repeat(varies, sizes)],
        np.searchsorted(owners, np.arange(memory.class_seg.size)).astype(np.int64),
        slack,
    )


def _events(memory: Memory) -> tuple[Ints, Ints]:
    """``event_start`` int64[R + 2] and the segments that begin (s) or end (-1 - s) at each row."""
    num_rows, segments = memory.slack.size, np.arange(memory.seg_class.size, dtype=np.int64)
    rows = np.concatenate([memory.seg_lo, memory.seg_hi])
    which = np.concatenate([segments, -1 - segments])
    order = np.argsort(rows, kind="stable")
    return np.searchsorted(rows[order], np.arange(num_rows + 2)).astype(np.int64), which[order]
