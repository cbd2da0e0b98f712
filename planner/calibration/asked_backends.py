"""Which back-ends of a question can a calibration correct?  Those whose physics it was fitted under."""

from __future__ import annotations

from collections.abc import Sequence

from planner.backends.backend import Software
from planner.backends.registry import backends, software, with_files
from planner.calibration.document import Calibration
from planner.factors import AppliedCalibration
from planner.physics.physics import TUNED
from planner.problem import ANY, UNRESTRICTED


def backends_for_calibration(asked: Sequence[str], calibration: Calibration | AppliedCalibration) -> tuple[str, ...]:
    """``constraints.backends`` of a question with this calibration.

    ``any`` becomes every back-end that files can be written for and whose physics has the name under which the
    calibration was fitted (else every known one of that physics, else it stays ``any`` and ``fitting_calibration``
    refuses it).  Named back-ends stay: ``physics_to_fit`` says what the calibration is compared with.  What a problem
    carries of a calibration says no physics, so it narrows nothing.
    """
    names = tuple(asked)
    if names != (ANY,) or not isinstance(calibration, Calibration):
        return names
    files = tuple(each.name for each in with_files() if each.releases[0].physics.name == calibration.traits)
    if files:
        return files
    known = dict[str, str]()
    for each in backends().values():
        for release in each.releases:
            if release.physics.name == calibration.traits:
                known.setdefault(each.name, Software(each, release).spelled)
    if len(known) > 1:
        # The free space stands alone in a question.
        known.pop(UNRESTRICTED, None)
    return tuple(known.values()) or names


def physics_to_fit(names: Sequence[str], calibration: Calibration | AppliedCalibration) -> str:
    """The physics that ``fitting_calibration`` compares: of the first named back-end that has another, else the same.

    ``names``: what ``backends_for_calibration`` gives.  Raises NotFound for a back-end that is not known.
    """
    if tuple(names) == (ANY,):
        return TUNED.name
    found = [software(name).release.physics.name for name in names]
    wanted = calibration.traits if isinstance(calibration, Calibration) else found[0]
    return next((each for each in found if each != wanted), wanted)
