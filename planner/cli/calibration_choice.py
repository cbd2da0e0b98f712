"""Which calibration does ``--calibration`` name?  A file, or the id of a stored one; it must fit device and inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.calibration.document import Calibration
    from planner.factors import AppliedCalibration
    from planner.problem import Problem


def chosen_calibration(text: str, problem: Problem) -> AppliedCalibration:
    """The factors for the device of a problem, on top of the predictions for every back-end that it asks.

    Raises Conflict for one that does not fit, NotFound, DocumentInvalid.
    """
    from planner.backends.asked import asked_software
    from planner.calibration.fitting_problem import fitting_calibration
    from planner.calibration.folder import calibrations_folder, find_calibration

    calibration = calibration_file(text) or find_calibration(text, calibrations_folder())
    device = problem.cluster.pools[0].device
    physics = dict.fromkeys(each.release.physics.name for each in asked_software(problem))
    fitting = [fitting_calibration(calibration, device, problem.profile, name) for name in physics]
    return fitting[0]


def calibration_file(text: str) -> Calibration | None:
    """The calibration of a file; None where ``text`` is the id of a stored one.  Raises NotFound, DocumentInvalid."""
    from planner.calibration.folder import read_calibration

    path = Path(text)
    is_file = path.exists() or path.suffix or len(path.parts) > 1
    return read_calibration(path) if is_file else None
