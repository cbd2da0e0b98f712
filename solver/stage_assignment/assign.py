"""Stages, their devices and their policies: exact, for several pools of unequal devices.

Given a line of L items, pools p with N_p units, options o (pool p_o, units n_o), and policies k.

Variables    the number of stages S; for each stage i = 0 .. S-1 its items [a_i, a_i + c_i), its option o_i and policy
             k_i.  e_i = S - i is its position from the end, z_i the class of its span.
             t_i = time[o_i, k_i, e_i, z_i],  d_i = late[o_i, k_i, e_i, z_i],
             v_i = max( w t_i,  u t_i + b sum_(j>i) t_j + q sum_(j>=i) hop[o_j, o_(j+1)] ),  its pace,
             w = pace_share[o_i, e_i, z_i],  (u, b, q) = pace_mix[e_i].
Objective    minimise  F( max_i v_i,  sum_i t_i,  sum_i hop[o_i, o_(i+1)],  max_i (d_i - h sum_(j<i) t_j)+,  S )
             for any F that never falls when one of the first four grows.  With h = 1 and
             F = (G - 1) peak + total + late this is the objective of Mist (arXiv 2503.19050): the last of G rounds
             leaves a stage the earlier, the later the stage, and what it then pays hides under the stages before it.
Constraints  (1) the spans follow each other and hold all items:  a_0 = 0, a_(i+1) = a_i + c_i, sum c_i = L
                                                                                            ``labels.grow``, ``_ends``
             (2) sum_(i: p_i = p) n_(o_i) <= N_p                                            ``labels.grow``
             (3) t_i is finite: the stage fits its memory with S - i rounds in flight       ``labels.grow``
             (4) fewest <= S <= most                                                        ``_ends``
             (5) optionally, the stages of a pool follow each other                         ``labels.grow``

Method.  The late term obeys a recursion from the end of the line: a stage put in front makes it
``max(d, (late - h t)+)``.  So dynamic programming from the end needs the labels (total, hops, late) per (start, units
used, front option, stages), and dominated labels go (``labels.without_dominated``; F is monotone, the recursions are,
and less total and hops never make a stage in front slower in pace).
The peak is enclosed instead of labelled.  In a window (floor, cap] stages of a pace above ``cap`` are forbidden and

             F( floor, total + rest, hops, late - h rest, S )  <  incumbent

must hold, where ``rest`` bounds what is missing from below (``rest.Rest``).  The first incumbent comes from the same
program with few labels a level, those of the least such F (``_dive``).  The final labels then hold the least
F(x, ...) of everything with a peak between x and ``cap``, for every x >= floor.  The window is closed down to the
smallest x where that is not below the incumbent (``_reopened``); what is left is a smaller window.  No window is open
where even the relaxed total is too slow (``_opening``): the answer is then proved (``assign``).

With a cutoff the number of stages is limited first (``stage_count.with_fewer_stages``).  A search may stop early, after
a number of labels or some time; what it returns is then F of the floor of the first window that is open.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from solver.arrays import Array, Ints
from solver.stage_assignment.evaluate import assignment_value, check_assignment
from solver.stage_assignment.labels import Labels, grow, nothing, places, without_dominated
from solver.stage_assignment.rest import Rest, least_by_count, lowest_peak
from solver.stage_assignment.stage_count import with_fewer_stages
from solver.stage_assignment.tables import (
    Assignment,
    AssignmentObjective,
    AssignmentTables,
    AssignmentValue,
    Searched,
    StageChoice,
)

Told = Callable[[tuple[StageChoice, ...], AssignmentValue], None]

DIVE_LABELS = 256
"""Labels a level of a dive."""
DIVES_AFTER_FIRST = 2
"""Wider windows that are dived into after the first one with an answer."""
RELAXED_STEP = 1.02
FIRST_STEP = 1.01
"""Width of the first window over the smallest peak with enough room; each next one is twice as wide."""
ROUNDING = 1e-12


@dataclass(slots=True)
class _Search:
    """The state of one call: what is known, what was done."""

    tables: AssignmentTables
    objective: AssignmentObjective
    best: Array
    best_pace: Array
    peaks: Array
    consecutive: bool
    deadline: float | None
    cutoff: float
    told: Told | None = None
    grown_limit: float = math.inf
    dives: bool = True
    found: tuple[tuple[StageChoice, ...], AssignmentValue] | None = None
    grown: int = 0
    labels: int = 0
    windows: int = 0
    rests: dict[float, Rest] = field(default_factory=dict)

    @property
    def mixed(self) -> bool:
        """Whether the pace of a stage depends on what stands behind it: it is then none of ``peaks``."""
        return self.tables.pace_mix is not None

    def cap(self, floor: float, step: float) -> float:
        """The end of a window from ``floor`` on that is ``step`` wide; the last one holds all that is left."""
        cap, highest = floor * step, float(self.peaks[-1])
        return cap if cap < highest else (sys.float_info.max if self.mixed else highest)

    def spent(self) -> bool:
        return self.grown > self.grown_limit or (self.deadline is not None and time.monotonic() > self.deadline)

    def rest(self, cap: float) -> Rest:
        if cap not in self.rests:
            self.rests = {cap: Rest(self.tables, self.best, self.best_pace, cap)}
        return self.rests[cap]


def _search(
    tables: AssignmentTables, objective: AssignmentObjective, consecutive: bool, deadline: float | None, cutoff: float
) -> _Search:
    best, best_pace = (least_by_count(tables, values) for values in (tables.time, tables.pace))
    peaks = np.unique(tables.pace[np.isfinite(tables.pace)])
    return _Search(tables, objective, best, best_pace, peaks, consecutive, deadline, cutoff)


def assign(
    tables: AssignmentTables,
    objective: AssignmentObjective,
    *,
    cutoff: float = math.inf,
    consecutive: bool = False,
    time_limit_s: float | None = None,
    told: Told | None = None,
) -> Assignment | None:
    """The best assignment with F below ``cutoff``, and a bound; None when there is none.

    ``told`` hears of every assignment that was the best so far.
    Exact unless the time limit ends first: ``bound`` is then below ``value``, and None means that none was found.
    """
    return search_below(
        tables, objective, cutoff=cutoff, consecutive=consecutive, time_limit_s=time_limit_s, told=told
    ).found


def search_below(
    tables: AssignmentTables,
    objective: AssignmentObjective,
    *,
    cutoff: float = math.inf,
    consecutive: bool = False,
    time_limit_s: float | None = None,
    grown_limit: float = math.inf,
    dives: bool = True,
    told: Told | None = None,
) -> Searched:
    """``assign``, with the bound that holds where nothing was found.

    ``grown_limit``: labels that may be grown before the search stops; unlike time it is the same on every machine.
    ``dives``: whether to look for a good answer first; not worth it where the cutoff is thought to leave none.
    """
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    if math.isfinite(cutoff):
        fewer = with_fewer_stages(tables, objective, cutoff)
        if fewer is None:
            return Searched(None, cutoff, complete=True, grown=0, labels=0, windows=0)
        tables = fewer
    search = _search(tables, objective, consecutive, deadline, cutoff)
    search.told, search.grown_limit, search.dives = told, grown_limit, dives
    opening = _opening(search)
    if opening is None:
        return Searched(None, math.inf, complete=True, grown=0, labels=0, windows=0)
    if dives:
        _dive(search, opening)
    bound = _windows(search, opening)
    counts = {"grown": search.grown, "labels": search.labels, "windows": search.windows}
    answer = None
    if search.found is not None:
        stages, value = search.found
        answer = Assignment(stages, value, min(bound, value.value), search.labels, search.windows)
        check_assignment(tables, answer, objective)
    return Searched(answer, min(bound, search.cutoff), complete=bound >= search.cutoff, **counts)


def relaxed_value(tables: AssignmentTables, objective: AssignmentObjective) -> tuple[float, float]:
    """A bound on F without order, hops and late work, and the peak where it lies; infinite when nothing has room.

    ``min over windows of F(floor, least total of stages up to cap)``, windows of ``RELAXED_STEP`` from the lowest peak.
    """
    search = _search(tables, objective, False, None, math.inf)
    peaks = search.peaks
    floor = _opening(search)
    if floor is None:
        return math.inf, math.inf
    fastest = search.rest(math.inf).whole()
    # Each entry counts at least what it counts by itself: peaks of entries do for a bound.
    best, at = math.inf, floor
    while _floor_value(search, floor, fastest) < best:
        cap = min(floor * RELAXED_STEP, float(peaks[-1]))
        value = _floor_value(search, floor, Rest(tables, search.best, search.best_pace, cap).whole())
        best, at = (value, cap) if value < best else (best, at)
        above = peaks[peaks > cap]
        if not len(above):
            break
        floor = float(above[0])
    return best, at


def _opening(search: _Search) -> float | None:
    """The smallest peak worth a look; None when no peak leaves room for all items."""
    if not len(search.peaks) or search.tables.stage_limit() < search.tables.fewest_stages:
        return None
    if not math.isfinite(search.rest(math.inf).whole()):
        return None
    return lowest_peak(search.tables, search.best_pace)


def _dive(search: _Search, lowest: float) -> None:
    """Look for a good answer quickly: few labels a level, in wider and wider windows."""
    step, further = FIRST_STEP, DIVES_AFTER_FIRST
    while further and not search.spent():
        cap = search.cap(lowest, step)
        _ends(search, lowest, cap, most_labels=DIVE_LABELS)
        if cap >= search.peaks[-1]:
            return
        further -= search.found is not None
        step = 1.0 + 2.0 * (step - 1.0)


def _windows(search: _Search, lowest: float) -> float:
    """Close every window from the smallest peak up; returns the bound that holds for what stayed open."""
    floor, step = lowest, FIRST_STEP
    while math.isfinite(floor):
        # The first stages of a search have no incumbent: narrow windows keep them small.
        total = search.rest(math.inf).whole()
        if _floor_value(search, floor, total) >= search.cutoff:
            return search.cutoff
        cap = search.cap(floor, step)
        if not _close(search, floor, cap):
            return _floor_value(search, floor, total)
        floor, step = _next_peak(search, cap), 1.0 + 2.0 * (step - 1.0)
    return search.cutoff


def _next_peak(search: _Search, peak: float) -> float:
    """The smallest peak above another one; infinite when there is none."""
    if search.mixed:
        return math.nextafter(peak, math.inf)
    above = search.peaks[search.peaks > peak]
    return float(above[0]) if len(above) else math.inf


def _peak_before(search: _Search, peak: float) -> float:
    """The largest peak below another one; below zero when there is none."""
    if search.mixed:
        return math.nextafter(peak, -math.inf)
    below = search.peaks[search.peaks < peak]
    return float(below[-1]) if len(below) else -1.0


def _close(search: _Search, floor: float, cap: float) -> bool:
    """Solve (floor, cap] from the top down until nothing of it is open; False when the search had to stop."""
    if search.dives:
        _ends(search, floor, cap, most_labels=DIVE_LABELS)
    while cap >= floor:
        if search.spent():
            return False
        ends = _ends(search, floor, cap)
        if ends is None:
            return False
        cap = _peak_before(search, min(_reopened(search, ends, floor, cap), cap))
    return True


def _reopened(search: _Search, ends: Array, floor: float, cap: float) -> float:
    """A peak from which on the labels are no better than the incumbent, the smallest one; ``ends`` [n, 4]."""

    def closed(peak: float) -> bool:
        return bool(_values(search, peak, ends).min() >= search.cutoff * (1 - ROUNDING))

    if not len(ends) or closed(floor):
        return floor
    if search.mixed:
        return _closing_peak(closed, floor, min(cap, max(floor, float(search.peaks[-1]))))
    peaks = search.peaks[(search.peaks >= floor) & (search.peaks <= cap)]
    low, high = 0, len(peaks)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if closed(float(peaks[middle])) else (middle + 1, high)
    return float(peaks[low]) if low < len(peaks) else math.nextafter(cap, math.inf)


def _closing_peak(closed: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest peak above ``low`` that is closed, looked for around ``high``; infinite when none is seen."""
    while not closed(high):
        low, high = high, 2.0 * high
        if not math.isfinite(high):
            return high
    # To the last digit: the incumbent's own peak must be closed, or the next window would find it again.
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (low, middle) if closed(middle) else (middle, high)
    return high


def _values(search: _Search, peak: float, ends: Array) -> Array:
    total, hops, late, stages = ends.T
    return search.objective.value(np.full(len(ends), peak), total, hops, late, stages)


def _floor_value(search: _Search, peak: float, total: float) -> float:
    zero = np.zeros(1)
    most = search.tables.stage_limit()
    return float(search.objective.least(zero + peak, zero + total, zero, zero, most)[0])


def _ends(search: _Search, floor: float, cap: float, most_labels: int | None = None) -> Array | None:
    """(total, hops, late, stages) of every complete label of a window that could win; improves the incumbent.

    None when the search had to stop.  With ``most_labels`` only the most promising of each level are kept: not exact.
    """
    tables, rest = search.tables, search.rest(cap)
    most = tables.stage_limit()
    levels, ends = [nothing(tables)], [np.zeros((0, 4))]
    search.windows += 1
    for from_end in range(1, most + 1):
        labels = grow(tables, levels[-1], from_end, cap, search.objective, consecutive=search.consecutive)
        search.grown += len(labels)
        labels, least = _promising(search, rest, labels, floor, from_end)
        if most_labels is not None and len(labels) > most_labels:
            labels = labels.take(np.sort(np.argsort(least, kind="stable")[:most_labels]))
        labels = without_dominated(tables, labels)
        search.labels += len(labels)
        if not len(labels):
            break
        complete = labels.start == 0
        if from_end >= tables.fewest_stages and complete.any():
            done = np.flatnonzero(complete)
            columns = labels.total[done], labels.hops[done], labels.late[done], np.full(len(done), float(from_end))
            ends.append(np.stack(columns, axis=1))
            _improve(search, [*levels, labels], done, floor)
        # A complete label has no items left for another stage; it stays only as a row that others may point to.
        levels.append(labels)
        if search.spent():
            return None
    return np.concatenate(ends)


def _promising(search: _Search, rest: Rest, labels: Labels, floor: float, from_end: int) -> tuple[Labels, Array]:
    """Labels that some completion could bring below the incumbent, and a bound on F of each."""
    if not len(labels):
        return labels, np.zeros(0)
    # Many labels share their place: what is missing depends on nothing else.
    _, first, of = np.unique(places(search.tables, labels), return_index=True, return_inverse=True)
    spare = search.tables.pool_units[None, :] - labels.used[first]
    missing = rest.bound(labels.start[first], spare, from_end + 1)[of]
    possible = np.flatnonzero(np.isfinite(missing))
    labels, missing = labels.take(possible), missing[possible]
    late = np.maximum(labels.late - search.objective.hides * missing, 0.0)
    peak = np.full(len(labels), floor)
    least = search.objective.least(peak, labels.total + missing, labels.hops, late, search.tables.stage_limit())
    hopeful = np.flatnonzero(least < search.cutoff)
    return labels.take(hopeful), least[hopeful]


def _improve(search: _Search, levels: list[Labels], done: Ints, floor: float) -> None:
    """Turn complete labels into assignments, the most promising first, and keep the best."""
    labels = levels[-1]
    stages = np.full(len(done), float(len(levels) - 1))
    hopes = search.objective.value(
        np.full(len(done), floor), labels.total[done], labels.hops[done], labels.late[done], stages
    )
    for at in np.argsort(hopes, kind="stable").tolist():
        if hopes[at] >= search.cutoff:
            return
        found = _assignment(search.tables, levels, int(done[at]))
        value = assignment_value(search.tables, found, search.objective)
        if value.value < search.cutoff:
            search.cutoff, search.found = value.value, (found, value)
            if search.told is not None:
                search.told(found, value)


def _assignment(tables: AssignmentTables, levels: list[Labels], row: int) -> tuple[StageChoice, ...]:
    """The stages of a complete label, first one first."""
    stages = []
    for level in range(len(levels) - 1, 0, -1):
        labels = levels[level]
        parent = int(labels.parent[row])
        start = int(labels.start[row])
        stop = int(levels[level - 1].start[parent])
        stages.append(StageChoice(start, stop - start, int(labels.option[row]), int(labels.policy[row])))
        row = parent
    return tuple(stages)
