"""The back-ends of a question that a calibration can correct: those whose physics it was fitted under.

``tuned`` counts as more than its name says.  Up to version 1 of a question no back-end had physics of its own: what ran
Megatron-Core, and every ``--target megatron``, was predicted under ``tuned``.  The physics ``megatron-core`` are those
with three facts about overlap more (``planner.backends.megatron.physics``); predictions of models without latent
attention, without expert overlap beside tensor parallelism or an interleaved pipeline are the same.  So a calibration
of ``tuned`` corrects what has either.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.backends.backend import Software
from planner.backends.megatron.physics import MEGATRON_CORE
from planner.backends.registry import backends, software, with_files
from planner.evidence.calibration.document import Calibration
from planner.predict.physics.physics import TUNED
from planner.question.factors import AppliedCalibration
from planner.question.problem import ANY, UNRESTRICTED

CORRECTED = {TUNED.name: (MEGATRON_CORE.name, TUNED.name)}
"""Physics that calibrations of one name correct, where that is not the one of the name alone."""


def corrected_physics(calibration: Calibration) -> tuple[str, ...]:
    """Names of the physics whose predictions a calibration corrects."""
    return CORRECTED.get(calibration.traits, (calibration.traits,))


def corrected_backends(calibration: Calibration) -> tuple[str, ...]:
    """Back-ends that a calibration corrects, as ``constraints.backends`` has them; empty where there is none.

    Those that files can be written for; where there is none of them, every known one, each in the first of its releases
    with these physics.
    """
    physics = corrected_physics(calibration)
    files = tuple(each.name for each in with_files() if each.releases[0].physics.name in physics)
    if files:
        return files
    known = dict[str, str]()
    for each in backends().values():
        for release in each.releases:
            if release.physics.name in physics:
                known.setdefault(each.name, Software(each, release).spelled)
    if len(known) > 1:
        # The free space stands alone in a question.
        known.pop(UNRESTRICTED, None)
    return tuple(known.values())


def backends_for_calibration(asked: Sequence[str], calibration: Calibration | AppliedCalibration) -> tuple[str, ...]:
    """``constraints.backends`` of a question with this calibration.

    ``any`` becomes every back-end that it corrects; without one it stays ``any``.  Named back-ends stay.  What a
    problem carries of a calibration says no physics, so it narrows nothing.
    """
    names = tuple(asked)
    if names != (ANY,) or not isinstance(calibration, Calibration):
        return names
    return corrected_backends(calibration) or names


def first_not_corrected(names: Sequence[str], calibration: Calibration) -> str | None:
    """The physics of the first back-end that a calibration does not correct; None where it corrects all.

    ``names``: what ``backends_for_calibration`` gives.  Raises NotFound for a back-end that is not known.
    """
    if tuple(names) == (ANY,):
        return TUNED.name
    physics = corrected_physics(calibration)
    found = (software(name).release.physics.name for name in names)
    return next((each for each in found if each not in physics), None)
