"""At which times can the capacity bind?  The rows that a solver must keep, exactly.

(1) A row is a time just before something ends and after something began (``_peaks``): the live set of every other time
    is contained in that of a row.
(2) Per row, the least and the most that all classes together can use (``row_extremes``): a row whose most fits is
    dropped; one whose least does not fit proves that nothing is feasible (CapacityExceeded).
(3) Row t is implied by a kept row r where  sum over classes of max_v (usage_t(v) - usage_r(v)) <= slack_t - slack_r
    (``drop_implied``): whoever keeps r within its slack keeps t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solver.selection.answer import BindingWindow
from solver.selection.kernel import FLAGS, INT, INTS, NOTHING, kernel
from solver.selection.presolve.classes import Classes, offsets
from solver.selection.problem import Integers, SelectionProblem
from solver.selection.reduced import MEMORY, Memory

PATIENCE = 80
"""How many rows in a row may resist before the walk from a kept row ends."""

LARGEST_WORK = 2_000_000_000
"""Where the search for implied rows ends: what is left is kept, which is always right."""


class CapacityExceeded(Exception):
    """At this window even the least usage of every class exceeds the capacity."""

    def __init__(self, window: BindingWindow) -> None:
        super().__init__(f"at least {window.least_usage} of {window.capacity} is used at {window.begin}")
        self.window = window


@kernel(NOTHING(INTS, INTS, INTS, INTS, INTS, INTS))
def add_usages(
    option_segment: Integers,
    option_value: Integers,
    usages: Integers,
    seg_start: Integers,
    floor: Integers,
    seg_usage: Integers,
) -> None:
    """Add each option's usage above its node's floor to its segment's table (segment -1: none; value -1: dead)."""
    for j in range(usages.size):
        s = option_segment[j]
        if s >= 0 and option_value[j] >= 0:
            seg_usage[seg_start[s] + option_value[j]] += usages[j] - floor[j]


@kernel(NOTHING(INTS, INTS, INTS, MEMORY, INTS, INTS))
def row_extremes(  # noqa: PLR0913, PLR0917
    event_start: Integers, event_segment: Integers, start: Integers, memory: Memory, least: Integers, most: Integers
) -> None:
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


@kernel(NOTHING(INTS, INTS, INTS, MEMORY, INTS, FLAGS, INT, INT))
def drop_implied(  # noqa: PLR0912, PLR0913, PLR0917
    event_start: Integers,
    event_segment: Integers,
    start: Integers,
    memory: Memory,
    order: Integers,
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
                    s = event_segment[q]
                    sign = direction
                    if s < 0:
                        s = -1 - s
                        sign = -direction
                    c = memory.seg_class[s]
                    size = start[c + 1] - start[c]
                    work += size
                    largest = np.int64(-(2**62))
                    for v in range(size):
                        difference[start[c] + v] += sign * memory.seg_usage[memory.seg_start[s] + v]
                        largest = max(largest, difference[start[c] + v])
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


def binding_rows(problem: SelectionProblem, classes: Classes) -> tuple[Memory, Integers]:
    """The segments over the rows that can bind, and the time at which each row lies.  Raises CapacityExceeded."""
    empty = Memory(*[np.zeros(0, np.int64)] * 5, np.zeros(classes.sizes.size + 1, np.int64), np.zeros(0, np.int64))
    if problem.capacity is None or problem.num_nodes == 0:
        return empty, np.zeros(0, np.int64)
    dead = classes.node_value < 0
    first = problem.option_start[:-1]
    floors = np.minimum.reduceat(np.where(dead, np.iinfo(np.int64).max, problem.usages), first)
    peaks = np.maximum.reduceat(np.where(dead, 0, problem.usages), first)
    using = (problem.live_from < problem.live_until) & (peaks > 0)
    times, ends = _peaks(problem.live_from[using], problem.live_until[using])
    if times.size == 0:
        return empty, times
    low, high = np.searchsorted(times, problem.live_from), np.searchsorted(times, problem.live_until)
    varies = using & (peaks > floors) & (high > low)
    memory = _segments(problem, classes, varies, floors, low, high)
    base = np.zeros(times.size + 1, np.int64)
    np.add.at(base, low[using], floors[using])
    np.subtract.at(base, high[using], floors[using])
    memory = normalised(memory._replace(slack=problem.capacity - np.cumsum(base)[:-1]))
    start = offsets(classes.sizes)
    events = _events(memory)
    least, most = np.zeros(times.size, np.int64), np.zeros(times.size, np.int64)
    row_extremes(*events, start, memory, least, most)
    worst = int(np.argmax(least - memory.slack))
    if least[worst] > memory.slack[worst]:
        needed = int(least[worst] - memory.slack[worst]) + problem.capacity
        raise CapacityExceeded(BindingWindow(int(times[worst]), int(ends[worst]), needed, problem.capacity))
    kept = most > memory.slack
    memory, times = keep_rows(memory, kept), times[kept]
    excess = (most[kept] - memory.slack) / np.maximum(1, memory.slack)
    kept = np.ones(times.size, np.bool_)
    drop_implied(*_events(memory), start, memory, np.argsort(-excess, kind="stable"), kept, PATIENCE, LARGEST_WORK)
    return normalised(keep_rows(memory, kept)), times[kept]


def _peaks(live_from: Integers, live_until: Integers) -> tuple[Integers, Integers]:
    """Where each row begins and ends: from a last beginning until the first end after it."""
    moments = np.concatenate([live_until, live_from])
    is_begin = np.repeat([False, True], live_from.size)
    order = np.lexsort((is_begin, moments))
    moments, is_begin = moments[order], is_begin[order]
    turn = np.flatnonzero(is_begin[:-1] & ~is_begin[1:])
    return moments[turn], moments[turn + 1]


def _segments(  # noqa: PLR0913, PLR0917
    problem: SelectionProblem,
    classes: Classes,
    varies: NDArray[np.bool_],
    floors: Integers,
    low: Integers,
    high: Integers,
) -> Memory:
    """Segments of the nodes that vary; nodes of one class over the same rows add up."""
    nodes = np.flatnonzero(varies)
    keys = np.stack([classes.node_class[nodes], low[nodes], high[nodes]])
    distinct, group = np.unique(keys, axis=1, return_inverse=True)
    node_segment = np.full(problem.num_nodes, -1, np.int64)
    node_segment[nodes] = group.ravel()
    seg_start = offsets(classes.sizes[distinct[0]])
    seg_usage = np.zeros(int(seg_start[-1]), np.int64)
    add_usages(
        np.repeat(node_segment, problem.option_counts),
        classes.node_value,
        problem.usages,
        seg_start,
        np.repeat(floors, problem.option_counts),
        seg_usage,
    )
    class_seg = np.searchsorted(distinct[0], np.arange(classes.sizes.size + 1)).astype(np.int64)
    return Memory(*(np.ascontiguousarray(row) for row in distinct), seg_start, seg_usage, class_seg, np.zeros(0, np.int64))


def keep_rows(memory: Memory, kept: NDArray[np.bool_]) -> Memory:
    """The same segments over fewer rows; segments over none are dropped, those over the same rows added up."""
    position = offsets(kept.astype(np.int64))
    low, high = position[memory.seg_lo], position[memory.seg_hi]
    sizes = np.diff(memory.seg_start)
    alive = high > low
    keys = np.stack([memory.seg_class, low, high])[:, alive]
    distinct, group = np.unique(keys, axis=1, return_inverse=True)
    segment = np.full(sizes.size, -1, np.int64)
    segment[alive] = group.ravel()
    new_sizes = np.zeros(distinct.shape[1], np.int64)
    new_sizes[group.ravel()] = sizes[alive]
    seg_start = offsets(new_sizes)
    seg_usage = np.zeros(int(seg_start[-1]), np.int64)
    value = np.arange(memory.seg_usage.size, dtype=np.int64) - np.repeat(memory.seg_start[:-1], sizes)
    add_usages(
        np.repeat(segment, sizes), value, memory.seg_usage, seg_start, np.zeros_like(memory.seg_usage), seg_usage
    )
    class_seg = np.searchsorted(distinct[0], np.arange(memory.class_seg.size)).astype(np.int64)
    rows = (np.ascontiguousarray(row) for row in distinct)
    return Memory(*rows, seg_start, seg_usage, class_seg, memory.slack[kept])


def normalised(memory: Memory) -> Memory:
    """Every segment's least usage becomes 0, paid from the slack of its rows."""
    if memory.seg_class.size == 0:
        return memory
    sizes = np.diff(memory.seg_start)
    least = np.minimum.reduceat(memory.seg_usage, memory.seg_start[:-1])
    used = np.zeros(memory.slack.size + 1, np.int64)
    np.add.at(used, memory.seg_lo, least)
    np.subtract.at(used, memory.seg_hi, least)
    return memory._replace(
        seg_usage=memory.seg_usage - np.repeat(least, sizes), slack=memory.slack - np.cumsum(used)[:-1]
    )


def _events(memory: Memory) -> tuple[Integers, Integers]:
    """``event_start`` int64[R + 2] and the segments that begin (s) or end (-1 - s) at each row."""
    num_rows, segments = memory.slack.size, np.arange(memory.seg_class.size, dtype=np.int64)
    rows = np.concatenate([memory.seg_lo, memory.seg_hi])
    which = np.concatenate([segments, -1 - segments])
    order = np.argsort(rows, kind="stable")
    return np.searchsorted(rows[order], np.arange(num_rows + 2)).astype(np.int64), which[order]
