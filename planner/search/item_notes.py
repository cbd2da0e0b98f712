"""What a plan assumes about samples with unequal numbers of images or clips."""

from __future__ import annotations

from planner.model.mixers.kinds import FED
from planner.question.problem import Workload
from planner.question.work_kind import COUNTS


def item_notes(workload: Workload) -> tuple[str, ...]:
    """Nothing where every sample has as many."""
    notes = []
    for modality in COUNTS:
        counts = workload.counts_of(modality)
        if counts is not None:
            notes.append(
                f"{FED[modality]}: {counts.words()}; ranks take samples as they come, so that a step waits for the one"
                " with the most, and memory is kept for all but one micro-batch in a million"
            )
    return tuple(notes)
