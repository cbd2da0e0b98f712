"""Partial assignments: how they grow from the end of the line, and which of them can be dropped.

A label is a set of stages that hold the items from ``start`` on.  Labels with the same start, units, front option and
number of stages have the same completions; one that is no better in total, hops and late is dropped
(``without_dominated``).  So is one whose units are the same, whose front option differs, and that stays behind even
after the most that its front could save on the next hop.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Array, Ints
from solver.stage_assignment.tables import AssignmentObjective, AssignmentTables


@dataclass(frozen=True, slots=True)
class Labels:
    """Partial assignments with equally many stages: [n] each, ``used`` [n, P].

    ``parent`` is the row of the previous level that the front stage was put before.
    """

    start: Ints
    used: Ints
    option: Ints
    policy: Ints
    parent: Ints
    total: Array
    hops: Array
    late: Array

    def __len__(self) -> int:
        return len(self.start)

    def take(self, at: Ints | NDArray[np.bool_]) -> Labels:
        """Some rows."""
        return Labels(*(getattr(self, field.name)[at] for field in fields(self)))


def nothing(tables: AssignmentTables) -> Labels:
    """The one label without stages."""
    none, zero = np.array([-1]), np.zeros(1)
    return Labels(
        start=np.array([tables.num_items]),
        used=np.zeros((1, len(tables.pool_units)), dtype=np.int64),
        option=none,
        policy=none,
        parent=none,
        total=zero,
        hops=zero,
        late=zero,
    )


def grow(
    tables: AssignmentTables,
    labels: Labels,
    from_end: int,
    cap: float,
    objective: AssignmentObjective,
    *,
    consecutive: bool,
) -> Labels:
    """Every label with one more stage in front whose pace is no more than ``cap``.

    ``consecutive``: the stages of a pool follow each other; a pool that was left counts as used up.
    """
    parts = [
        part
        for option in range(tables.num_options)
        if len(part := _with_option(tables, labels, option, from_end, cap, objective, consecutive=consecutive))
    ]
    if not parts:
        return labels.take(np.zeros(0, dtype=np.int64))
    return Labels(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Labels)))


def _with_option(
    tables: AssignmentTables,
    labels: Labels,
    option: int,
    from_end: int,
    cap: float,
    objective: AssignmentObjective,
    *,
    consecutive: bool,
) -> Labels:
    """The labels that one option in front makes, over all counts and policies."""
    pool, units = int(tables.option_pool[option]), int(tables.option_units[option])
    at = np.flatnonzero(labels.used[:, pool] + units <= tables.pool_units[pool])
    counts = np.arange(1, tables.span_class.shape[1] + 1)
    start = labels.start[at][:, None] - counts[None, :]
    classes = np.where(start >= 0, tables.span_class[np.maximum(start, 0), counts - 1], -1)
    position = tables.position(from_end)
    entries = np.maximum(classes, 0)
    slow = tables.pace[option, :, position, :][:, entries] > cap
    front = labels.option[at]
    hop = np.where(front >= 0, tables.hop[option, np.maximum(front, 0)], 0.0)
    if tables.pace_mix is not None:
        own, behind, hops = tables.pace_mix[position]
        behind_s = behind * labels.total[at] + hops * (labels.hops[at] + hop)
        if own > 0:
            slow |= own * tables.time[option, :, position, :][:, entries] > (cap - behind_s)[None, :, None]
    policy, row, column = np.nonzero(~slow & (classes >= 0)[None])
    parent, time = at[row], tables.time[option, policy, position, classes[row, column]]
    late = tables.late[option, policy, position, classes[row, column]]
    front, hop = front[row], hop[row]
    used = labels.used[parent]
    if consecutive:
        left = tables.option_pool[np.maximum(front, 0)]
        change = np.flatnonzero((front >= 0) & (left != pool))
        used[change, left[change]] = tables.pool_units[left[change]]
    used[:, pool] += units
    return Labels(
        start=start[row, column],
        used=used,
        option=np.full(len(row), option),
        policy=policy,
        parent=parent,
        total=labels.total[parent] + time,
        hops=labels.hops[parent] + hop,
        late=np.maximum(np.maximum(labels.late[parent] - objective.hides * time, 0.0), late),
    )


def without_dominated(tables: AssignmentTables, labels: Labels) -> Labels:
    """The labels that no other one with the same completions is at least as good as."""
    if len(labels) < 2:
        return labels
    place = places(tables, labels)
    labels = _peel(labels, place * tables.num_options + labels.option, labels.hops)
    if tables.num_options == 1 or len(labels) < 2:
        return labels
    # A front option can save at most this much on the next hop against the best one.
    ahead = (tables.hop - tables.hop.min(axis=1, keepdims=True)).max(axis=0)
    return _behind_any_front(labels, places(tables, labels), ahead)


def _behind_any_front(labels: Labels, place: Ints, ahead: Array) -> Labels:
    """Drop labels behind the shortest one of their place by more than any next hop could give back."""
    order = np.lexsort((labels.total, place))
    first = np.concatenate([[True], place[order][1:] != place[order][:-1]])
    leader = order[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]
    behind = (
        (labels.total[order] >= labels.total[leader])
        & (labels.hops[order] >= labels.hops[leader] + ahead[labels.option[leader]])
        & (labels.late[order] >= labels.late[leader])
        & (order != leader)
    )
    return labels.take(np.sort(order[~behind]))


def places(tables: AssignmentTables, labels: Labels) -> Ints:
    """Start and used units as one integer."""
    place = labels.start.astype(np.int64)
    for pool, units in enumerate(tables.pool_units.tolist()):
        place = place * (units + 1) + labels.used[:, pool]
    return place


def _peel(labels: Labels, key: Ints, hops: Array) -> Labels:
    """Keep the undominated labels of each key, front after front."""
    order = np.lexsort((labels.late, hops, labels.total, key))
    kept: list[Ints] = []
    while len(order):
        keys = key[order]
        first = np.concatenate([[True], keys[1:] != keys[:-1]])
        kept.append(order[first])
        leader = order[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]
        better = (hops[order] < hops[leader]) | (labels.late[order] < labels.late[leader])
        order = order[~first & better]
    return labels.take(np.sort(np.concatenate(kept)))
