"""How long is a step of unequal stages under 1F1B?  The objective of the assignment.

    step = makespan(1F1B; sum and maximum of the stages, mean hop)         ``planner.schedule.closed_form``
         + max_i ( late_i - h sum of the stages before i )+

``late_i`` is what stage i does once a step.  The last backward pass leaves stage i the earlier, the later the stage:
with h = 1 what it then reduces and updates hides under the stages before it (Mist, arXiv 2503.19050, does the same);
with h = 0 nothing hides, as in plans on one pool.

``least`` holds for any number of stages up to p: it takes the exposed hops with the smallest weight that some number
of stages gives them, and the slack with the mean over p stages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.schedule.closed_form import pipeline_makespan_s

Array = NDArray[np.float64]

SLACK_HIDES_HOPS = 0.75
"""Share of the faster stages' slack that hides hops under 1F1B (``planner.schedule.closed_form``)."""


@dataclass(frozen=True, slots=True)
class StepObjective:
    """Seconds of a step from the largest and the summed stage time, the summed hops, and the late work that shows."""

    num_microbatches: int
    hides: float

    def value(self, peak: Array, total: Array, hops: Array, late: Array, stages: Array) -> Array:
        """Seconds of a step; ``hops`` is the sum of one-way hops."""
        hop_s = hops / np.maximum(stages - 1, 1)
        one_chunk = (stages, 1, 0)
        makespan_s = pipeline_makespan_s("1f1b", self.num_microbatches, *one_chunk, total, peak, 0.0, hop_s)
        step_s: Array = makespan_s + late
        return step_s

    def least(self, peak: Array, total: Array, hops: Array, late: Array, most_stages: int) -> Array:
        """No more than ``value`` for any number of stages up to ``most_stages``."""
        rounds = self.num_microbatches - 1
        step_s: Array = rounds * peak + np.maximum(total, peak) + 2.0 * hops + late
        if most_stages > 1:
            slack_s = rounds * np.maximum(peak - total / most_stages, 0.0)
            weight = _least_trips_per_hop(self.num_microbatches, most_stages)
            step_s = step_s + np.maximum(2.0 * weight * hops - SLACK_HIDES_HOPS * slack_s, 0.0)
        return step_s


def _least_trips_per_hop(num_microbatches: int, most_stages: int) -> float:
    """Least N / (p - 1) over 2 <= p <= most_stages, with N of the closed form."""
    stages = np.arange(2, most_stages + 1)
    rounds = num_microbatches - 1
    return float(((rounds - np.ceil(rounds / stages)) / (stages - 1)).min())
