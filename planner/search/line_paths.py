"""The length of the path down to the last stage, back to stage r and through the rest of its work.

Of orders with one chunk a device.  With T what a stage does for one micro-batch, F its forward, m micro-batches, p
stages and c one hop, that path of stage r takes ::

    gpipe    sum T + 2 (p-1) c + (m-1) T_r
    1f1b     sum T + 2 (p-1) c + (m-1) T_r - (min(p-r, m) - 1) F_r
    zb_h1    sum F +   (p-1) c +  m    T_r -  min(p-r, m)      F_r

of which the first terms are the same for every stage.  Of zb_h1 the way of one micro-batch down and back, without the
weight gradients W, is a path too: sum (T - W) + 2 (p-1) c.  Shape letters: R rows, P stages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.predict.cost.row_cost import RowCost
from planner.predict.cost.short_axis import rows_at
from planner.predict.stage_memory import head_stage
from planner.search.chunk_times import HOST_FORWARD_SHARE, weight_gradients_s
from planner.strategy.rows import StrategyRows
from planner.strategy.schedules import SCHEDULE_NAMES
from solver.arrays import Array

SPLIT, BREADTH_FIRST = SCHEDULE_NAMES.index("zb_h1"), SCHEDULE_NAMES.index("gpipe")


class LinePaths:
    """These paths of rows of one number of stages; ``ends_forward_s`` [R, P]: forward passes beside the layers'."""

    def __init__(self, rows: StrategyRows, cost: RowCost, kind_counts: Array) -> None:
        stages, every = int(rows.pp[0]), np.arange(len(rows))
        split, first = rows.schedule == SPLIT, rows.schedule == BREADTH_FIRST
        self._split = split
        self._times = np.where(split, rows.num_microbatches, rows.num_microbatches - 1).astype(np.float64)
        done = np.minimum(stages - np.arange(stages), rows.num_microbatches[:, None]) - ~split[:, None]
        self._forwards = np.where(first[:, None], 0, done).astype(np.float64)
        self.ends_forward_s = np.repeat(
            (HOST_FORWARD_SHARE * (cost.stage_host_s + cost.regather_s))[:, None], stages, 1
        )
        self.ends_forward_s[:, 0] += cost.embedding_forward_s
        self.ends_forward_s[every, head_stage(rows, stages)] += cost.head_forward_s
        self._forward_s = cost.layer_forward_s @ kind_counts + self.ends_forward_s.sum(axis=1)
        self.gradient_s = weight_gradients_s(cost, kind_counts)
        self._hops_s = np.where(split, 1, 2) * (stages - 1) * cost.hop_s

    def longest_s(self, total_s: Array, rest_s: Array) -> Array:
        """Longest path of steps with ``total_s`` over all stages and ``rest_s`` of the stage with most: [R]."""
        shared_s = np.where(self._split, self._forward_s, total_s) + self._hops_s
        way_s = np.where(self._split, total_s - self.gradient_s + 2 * self._hops_s, 0.0)
        return np.asarray(np.maximum(shared_s + rest_s, way_s))

    def of_stages_s(self, stage_s: Array, forward_s: Array) -> Array:
        """The rest, of stages that take so long, ``forward_s`` of it forward: [R, P, ...]."""
        shape = (*self._forwards.shape, *(1 for _ in range(stage_s.ndim - 2)))
        times = self._times.reshape(-1, *(1 for _ in range(stage_s.ndim - 1)))
        with np.errstate(invalid="ignore"):
            seconds = times * stage_s - self._forwards.reshape(shape) * forward_s
        # With one micro-batch nothing is left, but what does not fit does not fit.
        return np.asarray(np.where(np.isinf(stage_s), np.inf, seconds))

    def least_of_stages_s(self, stage_s: Array, share: Array) -> Array:
        """The rest at least, where up to ``share`` [R] of what layers take is forward: [R, P, ...]."""
        return self.of_stages_s(stage_s, share.reshape(-1, *(1 for _ in range(stage_s.ndim - 1))) * stage_s)

    def weights(self) -> Array:
        """How often a stage's whole time counts in the rest, then how often the forward of each: [R, 1 + P]."""
        return np.concatenate([self._times[:, None], self._forwards], axis=1)

    def take(self, row: NDArray[np.int64]) -> LinePaths:
        """Some of the rows, in any order."""
        picked = object.__new__(LinePaths)
        for name in ("_split", "_times", "_forwards", "ends_forward_s", "_forward_s", "gradient_s", "_hops_s"):
            setattr(picked, name, rows_at(getattr(self, name), row))
        return picked
