"""Which calibration does ``--calibration`` name?  A file, or the id of a stored one; it must fit device and inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import Conflict

if TYPE_CHECKING:
    from planner.calibration.factors import AppliedCalibration
    from profiles.device import Device
    from profiles.prediction.reference import ProfileReference


def chosen_calibration(
    text: str, device: Device, profile: ProfileReference | None, framework: str
) -> AppliedCalibration:
    """The factors for ``device`` on top of the predictions for ``framework``.

    Raises Conflict (of another device; fitted on datasheets where measurements are used, or the reverse; fitted on the
    predictions for another framework), NotFound, DocumentInvalid.
    """
    from planner.calibration.folder import calibrations_folder, find_calibration, read_calibration
    from planner.framework.known import FRAMEWORKS

    path = Path(text)
    is_file = path.exists() or path.suffix or len(path.parts) > 1
    calibration = read_calibration(path) if is_file else find_calibration(text, calibrations_folder())
    if calibration.device != device.name:
        raise Conflict(
            f"the calibration is of {calibration.device}, the cluster has {device.name}",
            where="--calibration",
            hint="factors of one device say nothing about another: calibrate with runs on it, or leave the flag out",
        )
    if calibration.traits != framework:
        raise Conflict(
            f"the calibration corrects predictions for framework {calibration.traits}, this problem is of {framework}",
            where="--calibration",
            hint=f"add --framework {calibration.traits}"
            if calibration.traits in FRAMEWORKS
            else "calibrate with runs of the framework that the plan is for",
        )
    if (calibration.profile_id is None) != (profile is None):
        fitted, used = (
            ("datasheet predictions", "measurements") if profile else ("measurements", "datasheet predictions")
        )
        raise Conflict(
            f"the calibration corrects {fitted}, but this problem uses {used}",
            where="--calibration",
            hint="add --profile none" if profile else "give the --profile that it was fitted with, or calibrate again",
        )
    return calibration.applied()
