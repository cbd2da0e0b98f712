"""What does one factor per source buy, and does it hold on rows that it has not seen?

For each source a part F of its rows, whole ranking groups at a time and chosen by a hash of the group's name, gives
``ln factor = median ln(measured / predicted)``; everything is then reported on the rest.  A source with a single
group, or with no time measured, is not calibrated.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from planner.accuracy.prediction import Prediction
from planner.accuracy.sources import source_group


@dataclass(frozen=True, slots=True)
class SourceFactor:
    """Factor of one source, and how many rows made it."""

    factor: float
    num_fitted: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors by source, and which predictions were held out (not used for any factor)."""

    factors: dict[str, SourceFactor]
    held_out: tuple[bool, ...]

    def factor_of(self, prediction: Prediction) -> float:
        """Factor for a prediction; 1 for a source without one."""
        found = self.factors.get(source_group(prediction.row.source))
        return found.factor if found else 1.0


def calibrate(predictions: Sequence[Prediction], keys: Sequence[str], fraction: float) -> Calibration:
    """Fit the factors on about ``fraction`` of the timed rows of each source."""
    sources: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, (each, key) in enumerate(zip(predictions, keys, strict=True)):
        if each.row.measured_step_s is not None:
            sources[source_group(each.row.source)][key].append(index)
    held_out = [True] * len(predictions)
    factors: dict[str, SourceFactor] = {}
    for source, groups in sorted(sources.items()):
        chosen = _part(groups, fraction)
        if not chosen:
            continue
        logs = [
            math.log((predictions[index].row.measured_step_s or 1.0) / predictions[index].step_time_s)
            for index in chosen
        ]
        factors[source] = SourceFactor(math.exp(median(logs)), len(chosen))
        for index in chosen:
            held_out[index] = False
    return Calibration(factors, tuple(held_out))


def _part(groups: dict[str, list[int]], fraction: float) -> list[int]:
    """Rows of whole groups, in the order of their hashes, until the fraction is reached; at least one group stays."""
    order = sorted(groups, key=lambda key: hashlib.sha256(key.encode()).hexdigest())
    wanted = fraction * sum(len(indices) for indices in groups.values())
    chosen: list[int] = []
    for key in order[:-1]:
        if chosen and len(chosen) + 0.5 * len(groups[key]) > wanted:
            break
        chosen.extend(groups[key])
    return chosen
