"""The uncertainty of a predicted step time.

A plan's step time is a sum of terms whose inputs have different pedigrees.  Each term carries a relative standard
deviation; terms of one class are wrong together (the same device, the same network), classes independently::

    sigma^2 = sum over classes (sigma_class * share_of_step)^2
    interval = step * exp(-Z * FAST_SIDE * sigma)  to  step * exp(Z * SLOW_SIDE * sigma)

``Z`` = 1.2816 makes it an 80 % interval of a normal error (``z_of`` gives other levels).  The slow side is wider: what
a datasheet model leaves out (launches bound by the host, unfused point-wise work, stragglers, links below nominal) only
ever adds time, and it leaves little out that would save some.  The datasheet figures are priors: roofline with one
constant per device is 5-6 % (median) off on large matmuls and 13-19 % at the 90th percentile, an alpha-beta line 10 % /
27 % on collectives.  Both sides are from published runs of software that nobody studied, each source judged by what the
20 others ask for (decision 0087).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

PLAN_LEVEL = 0.80
"""What the interval of a plan is meant to hold."""
Z = 1.2816
"""Standard normal point of ``PLAN_LEVEL``."""
FAST_SIDE = 0.45
"""How far off a step may be that is faster than predicted, in ``sigma``: other sources ask for 0.42 to 0.45."""
SLOW_SIDE = 1.8
"""The same for a slower one: other sources ask for 1.70 to 1.96; the error of a tuned back-end and an eager one differ
that much."""
STUDIED_SLOW_SIDE = 1.1
"""The slow side of a back-end whose runs were studied, of which the fast side is 1: what only adds time is in its
physics; stragglers are left."""
DATASHEET_SIGMA: dict[str, float] = {"compute": 0.22, "network": 0.35, "schedule": 0.20, "host": 0.50}
FRAMEWORK_SIGMA: dict[str, float] = {"compute": 0.15, "network": 0.15}
"""What a table of operator or collective times cannot know (the back-end's own kernels, launches, stragglers): this
part of the datasheet spread stays when the inputs are measured; prior, half of the variance of compute."""
FRAMEWORK_PART = FRAMEWORK_SIGMA["compute"] / DATASHEET_SIGMA["compute"]
"""Of a spread of whole steps under datasheets: what is the back-end's own, as in the priors."""
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
    *,
    studied_sigma: float | None = None,
    level: float = PLAN_LEVEL,
) -> tuple[float, float]:
    """Interval of the step time from its breakdown, meant to hold ``level`` of all runs.

    ``input_sigma``: spread of measured inputs by class (``planner.predict.coverage``); None = datasheet inputs.
    ``framework_sigma``: what a calibration left unexplained on runs that it had not seen, in place of the prior; the
    slow side is then no wider, because what only adds time is in the factors.
    ``studied_sigma``: spread of whole steps on published runs of this back-end (``Physics.time_spread``).
    """
    step_s = sum(breakdown_s.values())
    reach = z_of(level) * step_sigma(breakdown_s, input_sigma, framework_sigma, studied_sigma)
    fast_side, slow_side = (FAST_SIDE, SLOW_SIDE) if studied_sigma is None else (1.0, STUDIED_SLOW_SIDE)
    if framework_sigma is not None:
        fast_side, slow_side = 1.0, 1.0
    return step_s * math.exp(-fast_side * reach), step_s * math.exp(slow_side * reach)


def z_of(level: float) -> float:
    """How many standard deviations either side hold this part of a normal error: 1.2816 for 0.8, 1.6449 for 0.9."""
    return round(NormalDist().inv_cdf(0.5 + 0.5 * level), 4)


def step_sigma(
    breakdown_s: Mapping[str, float],
    input_sigma: Mapping[str, float] | None = None,
    framework_sigma: float | None = None,
    studied_sigma: float | None = None,
) -> float:
    """Standard deviation of the log of the step time.

    A spread of whole steps needs no classes as long as the inputs are those that it was found with, datasheets.
    """
    if studied_sigma is not None:
        # What few calibrating runs leave is too narrow for other groups of runs: half of the variance stays.
        found = studied_sigma if framework_sigma is None else framework_sigma
        whole = math.sqrt(0.5 * (studied_sigma**2 + found**2))
        if input_sigma is None:
            return whole
        # The studied runs' inputs were datasheets: measured ones come in place of those and not on top of them.
        framework_sigma = whole if framework_sigma is not None else whole * FRAMEWORK_PART
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
