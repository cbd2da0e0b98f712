"""The measured runs of one back-end: a calibration belongs to the back-end whose predictions it corrects.

A row or log may name its software; where it names none that is known, the user says which it was and is believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.backends.backend import Software
from planner.backends.registry import software
from planner.evidence.calibration.calibrate import CalibrationRun
from planner.evidence.runs.row_flavour import flavour_of_row
from planner.evidence.runs.row_strategy import traits_of_row
from planner.evidence.runs.truth import TruthRow


def as_said(row: TruthRow, wanted: Software) -> TruthRow:
    """The row with the back-end that the user names, where neither its ``framework`` nor its source names any."""
    return row if row.framework or flavour_of_row(row).backend else replace(row, framework=wanted.spelled)


def runs_of_backend(runs: Iterable[CalibrationRun], wanted: Software) -> list[CalibrationRun]:
    """Runs of this back-end, or of none that is known, each under the physics of its release.

    A run that names its release is left out where that release has other physics.
    """
    return [_under(each, wanted) for each in runs if not each.backend or is_of(each.backend, wanted)]


def is_of(name: str, wanted: Software) -> bool:
    """Whether a run of the back-end of that name, perhaps with its release, counts as one of the wanted software."""
    bare, separator, _ = name.partition("==")
    if bare != wanted.name:
        return False
    return not separator or software(name).release.physics.name == wanted.release.physics.name


def _under(each: CalibrationRun, wanted: Software) -> CalibrationRun:
    flavour = replace(each.run.flavour, traits=wanted.release.physics)
    run = replace(each.run, flavour=flavour, traits=traits_of_row(each.run.row, flavour))
    return replace(each, run=run)
