"""Runs from rows of published measurements, and the back-end of each.

A row may name its software and version (columns ``framework``, ``framework_version``).  Where it does not, it is of the
back-end whose defaults its prediction uses (``planner.evidence.runs.flavours``), else of the one that the user names;
the version is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from planner.backends.backend import Software
from planner.evidence.calibration.calibrate import CalibrationRun
from planner.evidence.calibration.runs_of_backend import as_said, is_of
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.prediction import Unmapped, map_rows
from planner.evidence.runs.row_flavour import row_software
from planner.evidence.runs.sources import source_group
from planner.evidence.runs.truth import TruthRow

GroupBy = Literal["backend", "source"]


def truth_runs(
    rows: Sequence[TruthRow],
    file_of: Mapping[str, str],
    by: GroupBy = "backend",
    version: str = "",
    said: Software | None = None,
) -> tuple[list[CalibrationRun], list[Unmapped]]:
    """Runs with something measured, and rows that cannot be predicted.

    ``file_of``: name of the file by row id; ``said``: the back-end of rows that name none.
    """
    measured = [row if said is None else as_said(row, said) for row in rows if not row.out_of_memory]
    mapped, unmapped = map_rows(measured)
    runs = [
        CalibrationRun(
            run, _whose(run, by, said), run.row.framework_version or version, file_of[run.row.id], _backend(run)
        )
        for run in mapped
        if run.row.measured_step_s is not None or run.row.measured_peak_bytes is not None
    ]
    return runs, unmapped


def _backend(run: MappedRun) -> str:
    """What the row's own word says decides; a word that names no back-end of ours says nothing."""
    named = run.row.framework
    if named:
        return named if row_software(run.row) else ""
    return run.flavour.backend


def _whose(run: MappedRun, by: GroupBy, said: Software | None) -> str:
    """The row's own word; else the back-end that the user names, where the run is of it; else its flavour."""
    mine = said is not None and bool(_backend(run)) and is_of(_backend(run), said)
    name = run.row.framework or (said.spelled if said is not None and mine else run.flavour.name)
    return f"{name} ({source_group(run.row.source)})" if by == "source" else name
