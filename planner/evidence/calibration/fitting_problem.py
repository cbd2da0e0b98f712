"""Whether a calibration may correct a problem: same device, same physics, same kind of inputs.

A file or a stored calibration says whose predictions it corrects.  What a problem carries of one
(``AppliedCalibration``) does not: it comes from a problem that had it, and its back-end is taken as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.errors import Conflict
from planner.evidence.calibration.asked_backends import (
    backends_for_calibration,
    corrected_backends,
    first_not_corrected,
)
from planner.evidence.calibration.document import Calibration
from planner.question.factors import AppliedCalibration
from planner.question.problem import ANY

if TYPE_CHECKING:
    from profiles.device import Device
    from profiles.prediction.reference import ProfileReference

CALIBRATION_FLAG = "--calibration"


def fitting_calibration(
    calibration: Calibration | AppliedCalibration,
    device: Device,
    profile: ProfileReference | None,
    asked: Sequence[str],
) -> tuple[AppliedCalibration, tuple[str, ...]]:
    """The factors for ``device``, and ``constraints.backends`` of a question that asked these: ``any`` is narrowed.

    Raises Conflict: of another device; fitted on datasheets where measurements are used, or the reverse; fitted on the
    predictions under other physics than those of a back-end that is asked.  NotFound for a back-end that is not known.
    """
    applied = calibration.applied() if isinstance(calibration, Calibration) else calibration
    if applied.device != device.name:
        raise Conflict(
            f"the calibration is of {applied.device}, the cluster has {device.name}",
            where=CALIBRATION_FLAG,
            hint="factors of one device say nothing about another: calibrate with runs on it, or leave it out",
        )
    names = backends_for_calibration(asked, calibration)
    if isinstance(calibration, Calibration):
        _of_these_physics(calibration, names)
    if (applied.fitted_on_profile is None) != (profile is None):
        fitted, used = (
            ("datasheet predictions", "measurements") if profile else ("measurements", "datasheet predictions")
        )
        raise Conflict(
            f"the calibration corrects {fitted}, but this problem uses {used}",
            where=CALIBRATION_FLAG,
            hint="add --profile none" if profile else "give the --profile that it was fitted with, or calibrate again",
        )
    return applied, names


def _of_these_physics(calibration: Calibration, names: Sequence[str]) -> None:
    """Raises Conflict for a back-end whose predictions are not those that the calibration corrects."""
    other = first_not_corrected(names, calibration)
    if other is None:
        return
    fitted = f"the calibration corrects predictions under the physics {calibration.traits}"
    if tuple(names) == (ANY,):
        what = f"{fitted}, which no back-end has"
    else:
        what = f"{fitted}, this problem's back-end has {other}"
    fitting = corrected_backends(calibration)
    hint = (
        f"add --backend {','.join(fitting)}"
        if fitting
        else "calibrate again: profile calibrate --backend NAME, with runs of the back-end that the plan is for"
    )
    raise Conflict(what, where=CALIBRATION_FLAG, hint=hint)
