"""Lower bounds of a dealing's pipeline: the longest of some paths of its order, for many dealings at once.

A path's length is linear in the chunks' times (``planner.predict.schedule.paths.PathCounts``).  The paths that an order
surely has are known at once; each run adds the one that made it as long as it is, which is nearly always the longest
one of similar dealings too.  Shape letters: K paths, F dealings, C chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from planner.predict.schedule.paths import ChunkTimes, PathCounts
from planner.predict.schedule.run import known_paths, run_pipeline
from planner.strategy.schedules import ScheduleName
from solver.arrays import Array

ROUNDING = 1e-12
"""Relative slack that keeps another order of the same sums below what a run adds up."""


KEPT = 64
"""Orders whose paths are kept as columns: a search asks for the same ones again and again."""


class PathBounds:
    """Paths of one order under one hop time."""

    def __init__(self, schedule: ScheduleName, sizes: tuple[int, int, int, int], hop_s: float) -> None:
        self.schedule, self.sizes, self.hop_s = schedule, sizes, hop_s
        self._columns = _known_columns(schedule, sizes)

    def least_s(self, times: ChunkTimes) -> Array:
        """Lower bound of the pipeline of every dealing: [F]; times are [F, C]."""
        forwards, backwards, weight_gradients, hops = self._columns
        lengths = (
            times.forward_s @ forwards
            + times.backward_s @ backwards
            + times.weight_gradient_s @ weight_gradients
            + hops * self.hop_s
        )
        return np.asarray(lengths.max(axis=-1))

    def run(self, times: ChunkTimes) -> float:
        """Simulated length of one dealing's pipeline; its longest path is known from now on."""
        made = run_pipeline(self.schedule, self.sizes, times, self.hop_s)
        more = zip(self._columns, _columns([made.longest_path()]), strict=True)
        self._columns = tuple(np.concatenate(pair, axis=-1) for pair in more)
        return made.makespan_s


@lru_cache(maxsize=KEPT)
def _known_columns(schedule: ScheduleName, sizes: tuple[int, int, int, int]) -> tuple[Array, ...]:
    """The paths that an order surely has."""
    return _columns(known_paths(schedule, sizes))


def _columns(paths: Sequence[PathCounts]) -> tuple[Array, ...]:
    """Forwards, backwards and weight gradients [C, K], and hops [K]."""
    counts = (
        [path.forwards for path in paths],
        [path.backwards for path in paths],
        [path.weight_gradients for path in paths],
    )
    return (*(np.stack(each, axis=1) for each in counts), np.array([path.hops for path in paths]))
