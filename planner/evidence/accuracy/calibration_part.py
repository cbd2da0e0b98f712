"""The rows of a source that calibrate: whole ranking groups, about a part F of its rows; the others judge.

Groups go in the order of a hash of their names.  Devices of a source get their share: the next group is one of the
device that lacks most of its part.  Groups of which constants of the cost model were chosen come first: they can judge
nothing any more.  A group larger than half of the part is taken only if nothing smaller is there, so that
several groups speak; one group of a source always stays.  Rows with a time and rows with nothing but memory are dealt
by themselves, so that both are calibrated.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from planner.evidence.runs.prediction import Prediction
from planner.evidence.runs.sources import source_group


@dataclass(slots=True)
class _Group:
    device: str
    spent: bool
    name: str
    indices: list[int]

    @property
    def order(self) -> tuple[bool, str]:
        """Spent ones first, then by hash."""
        return not self.spent, hashlib.sha256(self.name.encode("utf-8", "backslashreplace")).hexdigest()


def calibration_part(
    predictions: Sequence[Prediction], keys: Sequence[str], spent: Sequence[bool], fraction: float
) -> tuple[bool, ...]:
    """For every prediction, whether it calibrates.  ``spent``: rows that chose a constant already."""
    sources: dict[tuple[str, bool], dict[str, _Group]] = defaultdict(dict)
    for index, (each, key, used) in enumerate(zip(predictions, keys, spent, strict=True)):
        if each.row.measured_step_s is None and each.row.measured_peak_bytes is None:
            continue
        groups = sources[source_group(each.row.source), each.row.measured_step_s is not None]
        group = groups.setdefault(key, _Group(each.row.device, True, key, []))
        group.indices.append(index)
        group.spent = group.spent and used
    chosen = [False] * len(predictions)
    for _, groups in sorted(sources.items()):
        for group in _chosen(sorted(groups.values(), key=lambda each: each.order), fraction):
            for index in group.indices:
                chosen[index] = True
    return tuple(chosen)


def _chosen(groups: list[_Group], fraction: float) -> list[_Group]:
    """Groups of one source, until about the fraction of its rows is reached."""
    wanted = fraction * sum(len(group.indices) for group in groups)
    lacking: dict[str, float] = defaultdict(float)
    for group in groups:
        lacking[group.device] += fraction * len(group.indices)
    chosen: list[_Group] = []
    taken = 0
    left = list(groups)
    while len(left) > 1:
        room = wanted - taken
        fitting = [group for group in left if 0.5 * len(group.indices) <= room]
        if not fitting and chosen:
            break
        fitting = fitting or [min(left, key=lambda group: len(group.indices))]
        small = [group for group in fitting if len(group.indices) <= max(0.5 * wanted, 1.0)] or fitting
        # sorted() is stable: among equals the order of the hashes stands.
        best = sorted(small, key=lambda group: -lacking[group.device])[0]
        left.remove(best)
        chosen.append(best)
        taken += len(best.indices)
        lacking[best.device] -= len(best.indices)
    return chosen
