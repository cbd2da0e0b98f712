"""How wrong may a predicted step time be?

A plan's step time is a sum of terms whose inputs have different pedigrees.  Each term carries a relative standard
deviation; terms of one class are wrong together (the same device, the same network), classes independently::

    sigma^2 = sum over classes (sigma_class * share_of_step)^2
    interval = step * exp(-Z * sigma)  to  step * exp(Z * SLOW_SIDE * sigma)

``Z`` = 1.2816 is the 80 % point of a normal error.  The slow side is wider: what a datasheet model leaves out (launches
bound by the host, unfused point-wise work, stragglers, links below nominal) only ever adds time.  The datasheet figures
are priors: roofline with one constant per device is 5-6 % (median) off on large matmuls and 13-19 % at the 90th
percentile, an alpha-beta line 10 % / 27 % on collectives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

Z = 1.2816
SLOW_SIDE = 2.5
"""How much further off a slow step may be than a fast one; prior, a tuned and an eager framework differ that much."""
DATASHEET_SIGMA: dict[str, float] = {"compute": 0.22, "network": 0.35, "schedule": 0.20, "host": 0.50}
FRAMEWORK_SIGMA: dict[str, float] = {"compute": 0.15, "network": 0.15}
"""What a table of operator or collective times cannot know (the framework's own kernels, launches, stragglers): this
part of the datasheet spread stays when the inputs are measured; prior, half of the variance of compute."""
CLASS_OF_TERM: dict[str, str] = {
    "compute": "compute",
    "recompute": "compute",
    "optimizer": "compute",
    "tp": "network",
    "cp": "network",
    "ep": "network",
    "dp": "network",
    "pp_send": "network",
    "pp_bubble": "schedule",
    "offload": "host",
    "host": "compute",
}


def step_interval_s(
    breakdown_s: Mapping[str, float],
    input_sigma: Mapping[str, float] | None = None,
    framework_sigma: float | None = None,
) -> tuple[float, float]:
    """80 % interval of the step time from its breakdown.

    ``input_sigma``: spread of measured inputs by class (``planner.coverage``); None = datasheet inputs.
    ``framework_sigma``: what a calibration left unexplained on runs that it had not seen, in place of the prior; the
    slow side is then no wider, because what only adds time is in the factors.  On 18 published groups of 9 to 217
    runs such intervals hold 88 % (98 % with the wide slow side; 84 % before calibration).
    """
    step_s, sigma = sum(breakdown_s.values()), step_sigma(breakdown_s, input_sigma, framework_sigma)
    slow_side = SLOW_SIDE if framework_sigma is None else 1.0
    return step_s * math.exp(-Z * sigma), step_s * math.exp(Z * slow_side * sigma)


def step_sigma(
    breakdown_s: Mapping[str, float],
    input_sigma: Mapping[str, float] | None = None,
    framework_sigma: float | None = None,
) -> float:
    """Standard deviation of the log of the step time."""
    step_s = sum(breakdown_s.values())
    shares: dict[str, float] = {}
    for term, seconds in breakdown_s.items():
        name = CLASS_OF_TERM[term]
        shares[name] = shares.get(name, 0.0) + seconds / step_s
    return math.sqrt(
        sum((_class_sigma(name, input_sigma, framework_sigma) * share) ** 2 for name, share in shares.items())
    )


def _class_sigma(name: str, input_sigma: Mapping[str, float] | None, framework_sigma: float | None) -> float:
    prior = FRAMEWORK_SIGMA.get(name)
    if prior is None:
        return DATASHEET_SIGMA[name]
    if input_sigma is None or name not in input_sigma:
        if framework_sigma is None:
            return DATASHEET_SIGMA[name]
        return math.sqrt(DATASHEET_SIGMA[name] ** 2 - prior**2 + framework_sigma**2)
    return math.hypot(prior if framework_sigma is None else framework_sigma, input_sigma[name])
