"""The calibration that ``--calibration`` names: a file, or the id of a stored one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.evidence.calibration.document import Calibration


def chosen_calibration(text: str) -> Calibration:
    """The calibration of a file, or a stored one by its id.  Raises NotFound, DocumentInvalid."""
    from planner.evidence.calibration.folder import calibrations_folder, find_calibration

    return calibration_file(text) or find_calibration(text, calibrations_folder())


def calibration_file(text: str) -> Calibration | None:
    """The calibration of a file; None where ``text`` is the id of a stored one.  Raises NotFound, DocumentInvalid."""
    from planner.evidence.calibration.folder import read_calibration

    path = Path(text)
    is_file = path.exists() or path.suffix or len(path.parts) > 1
    return read_calibration(path) if is_file else None
