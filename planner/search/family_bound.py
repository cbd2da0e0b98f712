"""Lower bounds of the declared family of dealings, for many strategies of several chunks a device at once.

The same sums as ``planner.search.family_split``, in another order: layers of each kind times what a layer of that kind
takes.  The two differ by rounding alone, which ``ROUNDING`` and a second ``SLACK`` of memory cover, so that the result
is a lower bound of what the exact search returns, and nearly always its value.  Pairs of a strategy and a member that
are too slow with the relief that is sure, or with the mean stage's tail, are not looked at any further.

Shape letters: R rows, Q pairs of a row and a member, P stages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.predict.cost.data_parallel import TailCost
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.cost.short_axis import rows_at
from planner.predict.stage_memory import stage_memory
from planner.search.bound import BACK_WHOLE
from planner.search.chunk_family import family_layers
from planner.search.chunk_times import HOST_FORWARD_SHARE
from planner.search.family_pairs import (
    FULLEST_DENSE,
    FULLEST_EXPERT,
    MAKESPAN_S,
    RELIEVED_S,
    at_least_paths,
    fast_pairs,
)
from planner.search.family_paths import family_paths
from planner.search.line_dealings import moment_columns
from planner.search.row_context import take
from planner.search.split_terms import SLACK, SplitRules
from planner.strategy.rows import StrategyRows, first_of_each, v_placed
from planner.strategy.schedules import SCHEDULE_NAMES, V_SCHEDULES
from solver.arrays import Array, Ints

ROUNDING = 2e-13
"""Relative slack that keeps another order of the same sums below what the exact search finds."""


@dataclass(frozen=True, slots=True)
class FamilyBound:
    """Rows of several chunks each; ``tail_s`` [R]: the mean stage's tail."""

    costs: CostModel
    rules: SplitRules
    rows: StrategyRows
    cost: RowCost
    tail_s: Array

    def step_s(self, cutoff_s: float) -> Array:
        """Lower bound of every row: [R]; infinity where no member fits and may be faster than ``cutoff_s``."""
        rules, below_s = self.rules, cutoff_s * (1 + ROUNDING)
        tolerance = 2 * SLACK * self.costs.hardware.memory_bytes
        limits = np.array([below_s, rules.limit_bytes, tolerance, rules.host_limit_bytes / (1 - ROUNDING)])
        parts, table = [(np.zeros(0, np.int64), np.zeros((0, RELIEVED_S)))], self._table()
        for stages in np.flatnonzero(np.bincount(self.rows.pp)).tolist():
            here = np.flatnonzero(self.rows.pp == stages)
            rows, cost = self.rows.take(here), take(self.cost, here)
            moments = moment_columns(stage_memory(rows, cost, self.costs.reliefs, stages).moments)
            first, order = first_of_each([rows.vpp, rows.schedule, rows.num_microbatches, rows.group])
            for number, one in enumerate(first.tolist()):
                at = np.flatnonzero(order == number)
                row, found = self._pairs(rows, one, (rows_at(table, here[at]), rows_at(moments, at)), limits)
                parts.append((here[at[row]], found))
        row, found = (np.concatenate(each) for each in zip(*parts, strict=True))
        fast = found[:, MAKESPAN_S] + self.tail_s[row] < below_s
        row, found = row[fast], found[fast]
        result = np.full(len(self.rows), np.inf)
        if len(row):
            tail = take(TailCost.of(self.cost), row)
            tails = self.costs.tail_parts_s(tail, found[:, FULLEST_DENSE], found[:, FULLEST_EXPERT])
            np.minimum.at(result, row, (found[:, MAKESPAN_S] + tails[0] + tails[1]) * (1 - ROUNDING))
        return result

    def _pairs(self, rows: StrategyRows, one: int, tables: tuple[Array, Array], limits: Array) -> tuple[Ints, Array]:
        """Pairs of the rows of one order, that of row ``one``, that may be fast enough: their rows, columns found."""
        pp, vpp, schedule = int(rows.pp[one]), int(rows.vpp[one]), SCHEDULE_NAMES[int(rows.schedule[one])]
        kinds, placed = (self.costs.kind_sequence, len(self.costs.kind_counts)), schedule in V_SCHEDULES
        family = family_layers(*kinds, pp, vpp, v_placed=placed, empty_ends=self.rules.empty_ends)
        if family is None:
            return np.zeros(0, np.int64), np.zeros((0, RELIEVED_S))
        most = len(tables[0]) * len(family.longest)
        pairs, found = np.empty((most, 2), np.int64), np.empty((most, RELIEVED_S + pp))
        counted = family.first, family.lead, family.longest
        number = fast_pairs(*counted, *tables, limits, int(self.rules.uniform), pairs, found)
        pairs, found = pairs[:number], found[:number]
        if number:
            order = schedule, (pp, vpp, int(rows.num_microbatches[one]), int(rows.group[one]))
            paths = family_paths(order, kinds, family)
            at_least_paths(paths.layers, paths.ends, paths.least, tables[0], pairs, found)
        return pairs[:, 0], found[:, :RELIEVED_S]

    def _table(self) -> Array:
        """What ``fast_pairs`` reads of every row beside the moments."""
        rows, cost, reliefs = self.rows, self.cost, self.costs.reliefs
        saving = cost.saved_bytes - cost.relieved_bytes
        seconds = cost.layer_s, cost.layer_forward_s, cost.layer_backward_s, cost.layer_weight_gradient_s, cost.relief_s
        layers = *seconds, cost.saved_bytes, saving, cost.layer_dense, cost.layer_expert, cost.frozen.layer
        host_s, whole = cost.stage_host_s + cost.regather_s, BACK_WHOLE[rows.schedule]
        few = np.array([relief.recompute == "full" for relief in reliefs])[rows.relief] & (not self.rules.whole)
        moved = np.array([relief.offload for relief in reliefs])[rows.relief]
        chunk_s = host_s / rows.vpp
        own = (
            *(host_s, cost.embedding_s, cost.head_s, cost.hop_s, self.tail_s, whole, rows.num_microbatches),
            *(np.where(v_placed(rows), 0, rows.pp - 1), cost.embedding_dense, cost.head_dense, cost.head_expert),
            *(cost.dense_state.host, cost.expert_state.host),
            *(few, self.rules.uniform & ~few, moved, moved | (rows.optimizer_offload > 0)),
            *(chunk_s * HOST_FORWARD_SHARE, cost.embedding_forward_s, cost.head_forward_s),
            *(chunk_s * (1.0 - HOST_FORWARD_SHARE), cost.embedding_backward_s, cost.head_backward_s),
            *(cost.embedding_weight_gradient_s, cost.head_weight_gradient_s, cost.hop_s),
        )
        return np.concatenate([*layers, np.stack(own, axis=1)], axis=1)
