"""Good deployments soon: usual layouts of every size first, then the neighbours of the best.

The proof needs the best deployment early, since it ends where no bound is above it; with a time limit this is what the
answer is made of.  Nothing here decides what is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest

import numpy as np

from planner.serving.search.contests import Contest
from planner.serving.search.instances import UNKNOWN, Judged
from planner.serving.search.layouts import FIELDS, Layouts

MOST_ROUNDS = 6
AXES = [FIELDS.index(name) for name in ("tp", "attention_dp", "cp", "pp")]
SHARES = [FIELDS.index(name) for name in ("dcp", "ep")]


def dive(contest: Contest, known: Iterable[tuple[int, ...]], out_of_time: Callable[[], bool]) -> set[tuple[int, ...]]:
    """Evaluate ``known`` layouts (columns) of other families, the usual ones, and neighbours of the best.

    Returns the columns of the layouts that the best stands on, for the next family.
    """
    known = set(known)
    first = [
        dict.fromkeys([*rows_like(each.instances.layouts, known), *usual_rows(each.instances.layouts)])
        for each in contest.judged
    ]
    # One of each role after the other, so that a limit leaves some of both.
    for rows in zip_longest(*first):
        if out_of_time():
            break
        for judged, row in zip(contest.judged, rows, strict=True):
            if row is not None:
                judged.take(row, usual=True)
    best: set[tuple[int, ...]] = set()
    for _ in range(MOST_ROUNDS):
        contest.refresh()
        optimum = contest.optimum(exact_only=True)
        rows = [_row_of(judged, devices) for judged, devices in zip(contest.judged, optimum.devices, strict=False)]
        found = {
            tuple(int(value) for value in judged.instances.layouts.columns[row])
            for judged, row in zip(contest.judged, rows, strict=False)
            if row != UNKNOWN
        }
        if not found or found == best or out_of_time():
            break
        best = found
        for judged, row in zip(contest.judged, rows, strict=False):
            for other in neighbours(judged.instances.layouts, row) if row != UNKNOWN else ():
                if out_of_time():
                    break
                judged.take(other, usual=True)
    for judged in contest.judged:
        for row in rows_like(judged.instances.layouts, best):
            judged.take(row)
    contest.refresh()
    return best


def warm(contest: Contest) -> None:
    """Evaluate the first usual layout: what is read for it is read once for all."""
    for judged in contest.judged:
        for row in usual_rows(judged.instances.layouts)[-1:]:
            judged.take(row, usual=True)
    contest.refresh()


def usual_rows(layouts: Layouts) -> list[int]:
    """Of every size: tp alone; tp in a node with pp; attention_dp and ep alone; tp = 2, 4 and 8 beside them."""
    columns, devices, stage = layouts.columns, layouts.devices, layouts.stage_devices
    if not len(columns):
        return []
    tp, dp, cp, dcp, pp, ep = (layouts.column(name) for name in FIELDS)
    plain = (cp == 1) & (dcp == 1)
    whole = plain & (ep == stage) & (pp == 1)
    usual = plain & (dp == 1) & (ep == 1) & ((pp == 1) | (tp == 8) | (tp == 4))
    usual |= whole & np.isin(tp, (1, 2, 4, 8))
    usual &= devices <= 64
    found = np.flatnonzero(usual)
    return [int(row) for row in found[np.argsort(devices[found], kind="stable")]]


def rows_like(layouts: Layouts, known: set[tuple[int, ...]]) -> list[int]:
    """Rows with these columns."""
    found: list[int] = []
    for columns in known:
        found += [int(row) for row in np.flatnonzero((layouts.columns == np.array(columns)).all(axis=1))]
    return found


def neighbours(layouts: Layouts, row: int) -> list[int]:
    """Rows that differ by one factor: moved between two axes, taken from or added to one, or of dcp or ep."""
    logs = np.log2(layouts.columns[:, : len(FIELDS)])
    apart = np.abs(logs - logs[row])
    axes, shares = apart[:, AXES].sum(axis=1), apart[:, SHARES].sum(axis=1)
    moved = (axes <= 2.0) & (shares <= 1.0) & (apart.max(axis=1) <= 1.0) & (axes + shares <= 2.0)
    grown = (axes <= 1.0) & (apart[:, SHARES].max(axis=1) <= 1.0) & (axes + shares <= 2.0)
    found = np.flatnonzero((moved | grown) & (axes + shares > 0))
    return [int(each) for each in found[np.argsort((axes + shares)[found], kind="stable")]]


def _row_of(judged: Judged, devices: int) -> int:
    return int(judged.pool(exact_only=True).row[devices])
