"""How long is the pipeline of a dealing at least?  The longest of some paths of its order, for many dealings at once.

A path's length is linear in the chunks' times (``planner.schedule.paths.PathCounts``).  The paths that an order
surely has are known at once; each run adds the one that made it as long as it is, which is nearly always the longest
one of similar dealings too.  Shape letters: K paths, F dealings, C chunks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.schedule.paths import ChunkTimes, PathCounts
from planner.schedule.run import known_paths, run_pipeline
from planner.strategy import ScheduleName

Array = NDArray[np.float64]

ROUNDING = 1e-12
"""Relative slack that keeps another order of the same sums below what a run adds up."""


class PathBounds:
    """Paths of one order under one hop time."""

    def __init__(self, schedule: ScheduleName, sizes: tuple[int, int, int, int], hop_s: float) -> None:
        self.schedule, self.sizes, self.hop_s = schedule, sizes, hop_s
        self.paths: list[PathCounts] = list(known_paths(schedule, sizes))

    def least_s(self, times: ChunkTimes) -> Array:
        """Lower bound of the pipeline of every dealing: [F]; times are [F, C]."""
        lengths = (
            times.forward_s @ np.stack([path.forwards for path in self.paths], axis=1)
            + times.backward_s @ np.stack([path.backwards for path in self.paths], axis=1)
            + times.weight_gradient_s @ np.stack([path.weight_gradients for path in self.paths], axis=1)
            + np.array([path.hops for path in self.paths]) * self.hop_s
        )
        return np.asarray(lengths.max(axis=-1))

    def run(self, times: ChunkTimes) -> float:
        """Simulated length of one dealing's pipeline; its longest path is known from now on."""
        made = run_pipeline(self.schedule, self.sizes, times, self.hop_s)
        self.paths.append(made.longest_path())
        return made.makespan_s
