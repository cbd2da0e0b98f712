"""Which runs do rows of published measurements give, and whose are they?

A row may name its framework and version (columns ``framework``, ``framework_version``).  Where it does not, the
framework is the one whose defaults its prediction uses (``planner.accuracy.flavours``), the version is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from planner.accuracy.prediction import MappedRun, Unmapped, map_rows
from planner.accuracy.sources import source_group
from planner.accuracy.truth import TruthRow
from planner.calibration.calibrate import CalibrationRun

GroupBy = Literal["framework", "source"]


def truth_runs(
    rows: Sequence[TruthRow], file_of: Mapping[str, str], by: GroupBy = "framework", version: str = ""
) -> tuple[list[CalibrationRun], list[Unmapped]]:
    """Runs with something measured, and rows that cannot be predicted.  ``file_of``: name of the file by row id."""
    mapped, unmapped = map_rows([row for row in rows if not row.out_of_memory])
    runs = [
        CalibrationRun(run, _framework(run, by), run.row.framework_version or version, file_of[run.row.id])
        for run in mapped
        if run.row.measured_step_s is not None or run.row.measured_peak_bytes is not None
    ]
    return runs, unmapped


def _framework(run: MappedRun, by: GroupBy) -> str:
    name = run.row.framework or run.flavour.name
    return f"{name} ({source_group(run.row.source)})" if by == "source" else name
