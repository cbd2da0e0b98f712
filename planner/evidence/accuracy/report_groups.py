"""The step-time errors of a report by source, by device and by model.

Rows that chose a constant of the cost model judge nothing and are left out, and so are rows without a measured time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from planner.evidence.accuracy.report_document import AccuracyReport, AccuracyRow
from planner.evidence.accuracy.statistics import error_figures
from planner.evidence.runs.sources import source_group

Axis = Literal["source", "device", "model"]
ALL = "all"
NOT_STATED = "not stated"
KEY_OF: dict[Axis, Callable[[AccuracyRow], str]] = {
    "source": lambda row: source_group(row.source),
    "device": lambda row: row.device or NOT_STATED,
    "model": lambda row: row.model or NOT_STATED,
}


def report_groups(report: AccuracyReport) -> dict[Axis, list[dict[str, Any]]]:
    """Per axis: the figures of each group, the largest first, then of ``all``."""
    judged = [row for row in report.rows if not row.fitted and row.measured_step_time_s is not None]
    return {axis: _groups(judged, key) for axis, key in KEY_OF.items()}


def _groups(rows: Sequence[AccuracyRow], key: Callable[[AccuracyRow], str]) -> list[dict[str, Any]]:
    members: defaultdict[str, list[AccuracyRow]] = defaultdict(list)
    for row in rows:
        members[key(row)].append(row)
    ordered = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"group": name, **_figures(each)} for name, each in [*ordered, (ALL, list(rows))]]


def _figures(rows: Sequence[AccuracyRow]) -> dict[str, Any]:
    predicted = np.array([row.predicted_step_time_s for row in rows], dtype=np.float64)
    measured = np.array([row.measured_step_time_s or np.nan for row in rows], dtype=np.float64)
    inside = [row.interval[0] <= (row.measured_step_time_s or np.nan) <= row.interval[1] for row in rows]
    return {**error_figures(predicted, measured), "interval_coverage": float(np.mean(inside)) if rows else None}
