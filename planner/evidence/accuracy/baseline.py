"""The baseline of the accuracy report: one constant model-FLOPs utilization per device.

``step = model FLOPs of a device / (peak * u)`` with ``u`` the median utilization of the *other* measured rows of the
same device name: leave-one-out, so a row never predicts itself.  A cost model that cannot beat this says nothing
about strategies.  The stricter form takes ``u`` from the same source, device and precision: vendors publish tuned
runs whose utilization hardly varies, so this guess already knows what tuning reaches.  Rows without another such row
have no baseline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from planner.evidence.runs.prediction import Prediction
from planner.evidence.runs.sources import source_group
from planner.evidence.runs.truth import TruthRow


def same_device(row: TruthRow) -> Hashable:
    """Rows that share a utilization: those of one device name."""
    return row.device


def same_source(row: TruthRow) -> Hashable:
    """Rows that share a utilization: those of one source, device and precision."""
    return source_group(row.source), row.device, row.precision


def baseline_step_s(
    predictions: Sequence[Prediction], key: Callable[[TruthRow], Hashable] = same_device
) -> list[float | None]:
    """Baseline step time of every prediction, in their order."""
    ideal = [each.model_flops_per_device / each.peak_flops_per_s for each in predictions]
    members: dict[Hashable, list[int]] = defaultdict(list)
    for index, each in enumerate(predictions):
        if each.row.measured_step_s is not None:
            members[key(each.row)].append(index)
    answer: list[float | None] = [None] * len(predictions)
    for indices in members.values():
        utilization = np.array([ideal[index] / (predictions[index].row.measured_step_s or 1.0) for index in indices])
        for position, index in enumerate(indices):
            others = np.delete(utilization, position)
            if len(others):
                answer[index] = ideal[index] / float(np.median(others))
    return answer
