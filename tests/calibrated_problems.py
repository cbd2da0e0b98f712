"""Random calibrations for random problems: factors all over their ranges, on the problem's own device."""

from __future__ import annotations

import random

from planner.question.factors import AppliedCalibration, Factors
from planner.question.problem import Problem


def applied(factors: Factors, device: str, framework_sigma: float | None = None) -> AppliedCalibration:
    """A calibration as a problem carries it."""
    return AppliedCalibration(
        calibration_id="c" * 64,
        framework="some framework",
        framework_version="1.0",
        device=device,
        factors=factors,
        num_rows=20,
        framework_sigma=framework_sigma,
    )


def random_factors(draw: random.Random) -> Factors:
    """Anything that a fit may give; fragmentation and fixed bytes small enough that some strategies fit."""
    return Factors(
        compute=draw.uniform(0.4, 4.0),
        communication=draw.uniform(0.4, 4.0),
        host_overhead_s=draw.choice([0.0, 1e-4, 5e-3, 0.1]),
        fixed_bytes=draw.choice([-900_000_000, 0, 300_000_000]),
        fragmentation=draw.uniform(0.5, 1.5),
    )


def calibrated(problem: Problem, seed: int) -> Problem:
    """The problem with a random calibration of its own device."""
    calibration = applied(random_factors(random.Random(seed)), problem.cluster.pools[0].device.name)
    return problem.model_copy(update={"calibration": calibration})
