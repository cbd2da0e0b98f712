"""Lower bounds of strategies of one chunk a device, where every stage relieves as many whole layers as it must.

Stage r takes with n layers of the most frequent kind at least ::

    h_r(n) = e_r + n t + rho c_r(n),    c_r(n) = ceil max(0, (n (S + f_r A) - room_r) / (f_r (A - a)))

and cannot hold them where ``c_r(n) > n``; letters as in ``planner.search.stage_capacity``, whose bound takes fractions
of layers.  What a path of the order makes of it, beside what it makes of all stages alike, ascends with n too ::

    gpipe   (m-1) h_r(n)
    1f1b    (m-1) h_r(n) - (min(p-r, m) - 1) F_r(n)
    zb_h1    m    h_r(n) -  min(p-r, m)      F_r(n)

(``planner.search.line_paths``), so the stages together hold L layers within lambda exactly where L of all these values
are at most lambda: the least lambda is the L-th smallest of them, and no less than the largest one of empty stages.
Shape letters: R rows, P stages, C numbers of layers on a stage.
"""

from __future__ import annotations

import numpy as np

from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.stage_memory import end_seconds, passes_memory
from planner.search.line_paths import LinePaths
from planner.search.split_terms import SLACK, SplitRules
from planner.strategy.rows import StrategyRows
from solver.arrays import Array

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
        paths = LinePaths(self.rows, self.cost, self.costs.kind_counts)
        on_path_s = paths.of_stages_s(self.ends_s, paths.ends_forward_s)
        count = np.arange(1.0, held_s.shape[2] + 1)
        forward_s = paths.ends_forward_s[:, :, None] + self.cost.layer_forward_s[:, self._major, None, None] * count
        values_s = paths.of_stages_s(held_s, forward_s).reshape(len(self.rows), -1)
        if values_s.shape[1] < needed:
            return np.full(len(self.rows), np.inf)
        least_s = np.maximum(np.partition(values_s, needed - 1, axis=1)[:, needed - 1], on_path_s.max(axis=1))
        return np.asarray((paths.longest_s(self.total_s, least_s) + self.tail_s) * (1 - ROUNDING))

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
        """``h_r(n)`` of every stage and every n up to ``most``, infinity where they do not fit: [R, P, C]."""
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
        return seconds
