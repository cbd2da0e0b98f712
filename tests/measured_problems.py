"""Random measurements for random problems: operator times that no model would guess, on the problem's own device."""

from __future__ import annotations

import numpy as np

from planner.question.problem import Problem
from profiles.prediction.build_curves import build_curves
from profiles.prediction.collective_curves import collective_curves
from profiles.prediction.profile import CollectiveKey, OperatorTable, Profile, TableOrigin
from profiles.prediction.profile_folder import keep
from profiles.prediction.reference import ProfileReference
from profiles.prediction.roofline import roofline_of


def random_profile(problem: Problem, seed: int, utilisation: tuple[float, float] = (0.1, 0.9)) -> ProfileReference:
    """Matmuls on a rough grid at these parts of the roofline, two collectives within a factor of four of a line."""
    random = np.random.default_rng(seed)
    device = problem.cluster.pools[0].device
    dtype = problem.workload.precision
    roof = roofline_of(device, dtype)
    if roof is None:
        raise ValueError(f"{device.name} has no {dtype} peak")
    m, n, k = (each.ravel() for each in np.meshgrid(*[np.exp2(np.arange(5.0, 15.0, 2.0))] * 3, indexing="ij"))
    best_s = roof.matmul_s(m, n, k)
    curves = build_curves(np.stack([n, k], axis=1), m, best_s, best_s / random.uniform(*utilisation, len(m)))
    origin = TableOrigin(operator="matmul", dtype=dtype, num_points=len(m))
    sizes = np.exp2(np.arange(10.0, 30.0, 4.0))
    times = {
        CollectiveKey(operation, group, 1): (
            sizes,
            (1e-5 + sizes / 1e11) * random.uniform(0.5, 2.0, len(sizes)),
        )
        for operation in ("all_reduce", "all_gather")
        for group in (2, 4)
    }
    profile = Profile(
        device.name, {("matmul", dtype, ""): OperatorTable(curves, roof, origin)}, collective_curves(times)
    )
    return keep(profile)
