"""May this calibration correct this problem?  It must be of the same device, physics and kind of inputs.

A file or a stored calibration says whose predictions it corrects.  What a problem carries of one
(``AppliedCalibration``) does not: it comes from a problem that had it, and its framework is taken as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.registry import backends
from planner.calibration.document import Calibration
from planner.errors import Conflict
from planner.factors import AppliedCalibration

if TYPE_CHECKING:
    from profiles.device import Device
    from profiles.prediction.reference import ProfileReference

CALIBRATION_FLAG = "--calibration"


def fitting_calibration(
    calibration: Calibration | AppliedCalibration, device: Device, profile: ProfileReference | None, physics: str
) -> AppliedCalibration:
    """The factors for ``device`` on top of the predictions under the named ``physics``.

    Raises Conflict: of another device; fitted on datasheets where measurements are used, or the reverse; fitted on the
    predictions under other physics.
    """
    applied = calibration.applied() if isinstance(calibration, Calibration) else calibration
    if applied.device != device.name:
        raise Conflict(
            f"the calibration is of {applied.device}, the cluster has {device.name}",
            where=CALIBRATION_FLAG,
            hint="factors of one device say nothing about another: calibrate with runs on it, or leave it out",
        )
    if isinstance(calibration, Calibration) and calibration.traits != physics:
        raise Conflict(
            f"the calibration corrects predictions under the physics {calibration.traits}, this problem's back-end has"
            f" {physics}",
            where=CALIBRATION_FLAG,
            hint=_with_these_physics(calibration.traits),
        )
    if (applied.fitted_on_profile is None) != (profile is None):
        fitted, used = (
            ("datasheet predictions", "measurements") if profile else ("measurements", "datasheet predictions")
        )
        raise Conflict(
            f"the calibration corrects {fitted}, but this problem uses {used}",
            where=CALIBRATION_FLAG,
            hint="add --profile none" if profile else "give the --profile that it was fitted with, or calibrate again",
        )
    return applied


def _with_these_physics(name: str) -> str:
    """Which back-ends behave like the runs that the calibration was made from."""
    fitting = [each.name for each in backends().values() if any(r.physics.name == name for r in each.releases)]
    return f"add --backend {fitting[0]}" if fitting else "calibrate with runs of the back-end that the plan is for"
