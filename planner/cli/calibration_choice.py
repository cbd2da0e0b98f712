"""Which calibration does ``--calibration`` name?  A file, or the id of a stored one; it must fit device and inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.calibration.document import Calibration
    from planner.problem import Problem


def calibrated(problem: Problem, text: str) -> Problem:
    """The problem with the factors for its device; ``any`` becomes the back-ends that the calibration corrects.

    Raises Conflict for one that does not fit, NotFound, DocumentInvalid.
    """
    from planner.calibration.fitting_problem import fitting_calibration
    from planner.calibration.folder import calibrations_folder, find_calibration

    calibration = calibration_file(text) or find_calibration(text, calibrations_folder())
    constraints = problem.constraints
    applied, names = fitting_calibration(
        calibration, problem.cluster.pools[0].device, problem.profile, constraints.backends
    )
    asked = constraints.model_copy(update={"backends": names})
    return problem.model_copy(update={"calibration": applied, "constraints": asked})


def calibration_file(text: str) -> Calibration | None:
    """The calibration of a file; None where ``text`` is the id of a stored one.  Raises NotFound, DocumentInvalid."""
    from planner.calibration.folder import read_calibration

    path = Path(text)
    is_file = path.exists() or path.suffix or len(path.parts) > 1
    return read_calibration(path) if is_file else None
