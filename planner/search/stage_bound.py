"""How fast is a strategy of one chunk a device at best, where every stage relieves as many whole layers as it must?

Stage r takes with n layers of the most frequent kind at least ::

    h_r(n) = e_r + n t + rho c_r(n),    c_r(n) = ceil max(0, (n (S + f_r A) - room_r) / (f_r (A - a)))

and cannot hold them where ``c_r(n) > n``; letters as in ``planner.search.stage_capacity``, whose bound takes fractions
of layers.  Every ``h_r`` ascends, so the stages together hold L layers within tau exactly where L of all the values
``h_r(n)`` are at most tau: the bottleneck is the L-th smallest of them, and no less than the longest ``e_r``.
Shape letters: R rows, P stages, C numbers of layers on a stage.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.cost.row_cost import CostModel, RowCost
from planner.memory.stage import end_seconds, passes_memory
from planner.search.bound import Schedules, makespan_s
from planner.search.split_terms import SLACK, SplitRules
from planner.strategy_rows import StrategyRows

Array = NDArray[np.float64]

ROUNDING = 1e-9
"""Relative slack that keeps rounding from cutting off a dealing that fits or is as fast."""


class StageBound:
    """Rows of one number of stages with one chunk each, under rules that let every stage choose its relief.

    ``tail_s`` [R]: the mean stage's tail.
    """

    def __init__(self, costs: CostModel, rules: SplitRules, rows: StrategyRows, cost: RowCost, tail_s: Array) -> None:
        self.costs, self.rules, self.rows, self.cost, self.tail_s = costs, rules, rows, cost, tail_s
        self.ends_s = end_seconds(rows, cost, int(rows.pp[0]))
        self.total_s = cost.layer_s @ costs.kind_counts + self.ends_s.sum(axis=1)

    def step_s(self, cutoff_s: float) -> Array:
        """Lower bound of every row: [R]; infinity where nothing fits and may be faster than ``cutoff_s``."""
        needed = int(self.costs.kind_counts.max())
        held_s = self._held_s(self._most(cutoff_s, needed))
        if held_s.shape[1] < needed:
            return np.full(len(self.rows), np.inf)
        bottleneck_s = np.partition(held_s, needed - 1, axis=1)[:, needed - 1]
        result, at = np.full(len(self.rows), np.inf), np.flatnonzero(np.isfinite(bottleneck_s))
        mean_s = self.total_s[at] / self.rows.pp[at]
        peak_s = np.maximum(np.maximum(bottleneck_s[at], self.ends_s[at].max(axis=1)), mean_s)
        seconds = self.total_s[at], peak_s, self.cost.hop_s[at], np.zeros(len(at))
        result[at] = (makespan_s(Schedules.of(self.rows, at), *seconds) + self.tail_s[at]) * (1 - ROUNDING)
        return result

    def _most(self, cutoff_s: float, needed: int) -> int:
        """Most layers that a stage of any row can hold in a step faster than the cutoff: makespan >= m bottleneck."""
        if not np.isfinite(cutoff_s):
            return needed
        left_s = (cutoff_s - self.tail_s) / self.rows.num_microbatches - self.ends_s.min(axis=1)
        most = np.floor(left_s / self._layer_s() * (1 + ROUNDING)).max(initial=0.0)
        return int(min(max(most, 0.0), needed))

    def _layer_s(self) -> Array:
        return np.asarray(self.cost.layer_s[:, self._major])

    @property
    def _major(self) -> int:
        return int(np.argmax(self.costs.kind_counts))

    def _held_s(self, most: int) -> Array:
        """``h_r(n)`` of every stage and every n up to ``most``, infinity where they do not fit: [R, P C]."""
        cost, major, count = self.cost, self._major, np.arange(1.0, most + 1)
        fixed, flight, states = passes_memory(self.rows, cost, self.costs.reliefs, int(self.rows.pp[0]))
        kept, relieved = cost.saved_bytes[:, major], cost.relieved_bytes[:, major]
        room = self.rules.limit_bytes + 2 * SLACK * self.costs.hardware.memory_bytes - fixed
        layer_bytes = states[:, major, None] + flight * kept[:, None]
        over = np.maximum(layer_bytes[:, :, None] * count - room[:, :, None], 0.0)
        saving = (flight * (kept - relieved)[:, None])[:, :, None]
        share = np.divide(over, saving, out=np.where(over > 0, np.inf, 0.0), where=saving > 0)
        relieves = np.ceil(share * (1 - ROUNDING))
        seconds = self.ends_s[:, :, None] + self._layer_s()[:, None, None] * count
        with np.errstate(invalid="ignore"):
            seconds = seconds + np.where(relieves > 0, cost.relief_s[:, major, None, None] * relieves, 0.0)
        seconds[relieves > count] = np.inf
        return seconds.reshape(len(self.rows), -1)
