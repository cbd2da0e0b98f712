"""Which strategy is best, with proof?  Best-bound-first over columns of strategies, for one number of devices.

1. Bound every layout (``planner.search.space``) by what all its leaves share.
2. In order of that bound, write out the leaves of the next layouts and bound each with memory.
3. In order of the leaf bounds, solve the inner problem exactly (``planner.search.split``).
4. Stop when the next bound is not below the incumbent: nothing left can be faster.

When stopped early, the smallest bound not yet examined is a lower bound of the whole space.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.candidate import Candidate
from planner.cost.data_parallel import optimizer_s
from planner.cost.hardware import Hardware
from planner.cost.model_cost import ModelCost
from planner.cost.row_cost import CostModel
from planner.problem import Problem
from planner.search.bound import BoundTerms, lower_bounds_s, makespan_s
from planner.search.options import Progress, SearchOptions, SearchProgress
from planner.search.row_context import RowContext, row_context, take
from planner.search.space import Space
from planner.search.split import SplitRules, best_split
from planner.search.target_rules import TargetRules
from planner.strategy_rows import StrategyRows

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_BATCH = 20_000
NEXT_BATCH = 120_000
"""Leaves written out at a time: the first batch finds an incumbent, later ones finish the proof; bounds memory use."""
LAYOUT_BATCH = 250_000


@dataclass(slots=True)
class SearchResult:
    """What a search found: candidates by degrees, the proof, and how much was looked at."""

    best: Candidate | None = None
    by_degrees: dict[tuple[int, ...], Candidate] = field(default_factory=dict)
    lower_bound_s: float = float("inf")
    complete: bool = False
    enumerated: int = 0
    bounded: int = 0
    evaluated: int = 0
    pruned: Counter[str] = field(default_factory=Counter)


def degrees(candidate: Candidate) -> tuple[int, ...]:
    """What makes two plans different in kind: their degrees."""
    s = candidate.strategy
    return (s.tp, s.cp, s.pp, s.ep, s.etp, s.dp)


class Search:
    """One search for one number of devices; ``run`` returns its result."""

    def __init__(
        self, problem: Problem, hardware: Hardware, options: SearchOptions, progress: Progress | None = None
    ) -> None:
        self.problem = problem
        self.options = options
        self.progress = progress
        self.space = Space(problem, hardware.num_devices)
        self.costs = CostModel(problem.model, problem.workload, hardware, self.space.reliefs)
        self.rules = SplitRules(
            limit_bytes=memory_limit_bytes(problem, hardware), uniform=self.space.target.uniform_recompute
        )
        self.target = TargetRules(problem)
        self.result = SearchResult()
        self.deadline = None if options.time_limit_s is None else time.monotonic() + options.time_limit_s
        self._waiting: dict[tuple[int, ...], tuple[float, RowContext]] = {}

    def run(self, cutoff_s: float = float("inf")) -> SearchResult:
        """Search for a candidate faster than ``cutoff_s``."""
        layouts = self.space.layouts
        result = self.result
        if len(layouts):
            table, key = self.costs.keyed(layouts)
            bounds = self._layout_bounds(layouts, table, key)
            counts = self.space.leaf_counts(layouts)
            result.bounded = int(counts.sum())
            self._descend(layouts, bounds, counts, table, key, cutoff_s)
        else:
            result.complete = True
        result.pruned = self.space.pruned + result.pruned
        result.enumerated = result.bounded + sum(self.space.pruned.values())
        if result.best is not None:
            result.lower_bound_s = min(result.lower_bound_s, result.best.step_time_s)
        return result

    def more_alternatives(self) -> None:
        """Fill up the alternatives with the most promising strategies of other degrees (solved, not proved)."""
        found, wanted = self.result.by_degrees, self.options.top_k + 1
        for _, (_, context) in sorted(self._waiting.items(), key=lambda item: item[1][0]):
            if len(found) >= wanted or self._late():
                return
            candidate = self._solve(context, float("inf"))
            if candidate is not None and degrees(candidate) not in found:
                found[degrees(candidate)] = candidate

    def _layout_bounds(self, layouts: StrategyRows, table: ModelCost, key: Ints) -> Array:
        """Lower bound of every layout over all its leaves: no relief, no ZeRO traffic, fully sharded optimizer."""
        parts = []
        for start in range(0, len(layouts), LAYOUT_BATCH):
            rows = layouts.slice(start, start + LAYOUT_BATCH)
            cost = self.costs.rows(rows, (table, key[start : start + LAYOUT_BATCH]))
            terms = BoundTerms(self.costs, rows, cost, with_tail=False)
            shared = np.zeros(len(rows))
            for parameters, parallel in (
                (terms.mean_dense, cost.dense_parallel),
                (terms.mean_expert, cost.expert_parallel),
            ):
                local = parameters / np.maximum(parallel.ranks, 1.0)
                shared += optimizer_s(local, parallel, self.problem.workload, self.costs.hardware)
            bottleneck = terms.total_s / rows.pp
            parts.append(makespan_s(rows, terms.total_s, bottleneck, terms.weight_gradient_s, cost.hop_s) + shared)
        return np.concatenate(parts)

    def _descend(
        self, layouts: StrategyRows, bounds: Array, counts: Ints, table: ModelCost, key: Ints, cutoff_s: float
    ) -> None:
        order = np.argsort(bounds, kind="stable")
        running = np.cumsum(counts[order])
        position, batch = 0, FIRST_BATCH
        while position < len(order):
            best = self._cutoff(cutoff_s)
            if bounds[order[position]] >= best:
                break
            if self._late():
                self.result.lower_bound_s = min(self.result.lower_bound_s, float(bounds[order[position]]))
                return
            done = running[position - 1] if position else 0
            stop = max(position + 1, int(np.searchsorted(running, done + batch, side="right")))
            picked = order[position:stop]
            picked = picked[bounds[picked] < best]
            self._leaves(layouts.take(picked), key[picked], table, cutoff_s)
            if self.result.lower_bound_s < self._cutoff(cutoff_s):
                return  # out of time inside the batch
            position, batch = stop, NEXT_BATCH
        self.result.complete = True

    def _leaves(self, layouts: StrategyRows, key: Ints, table: ModelCost, cutoff_s: float) -> None:
        """Bound the leaves of some layouts and solve the promising ones."""
        rows, leaf_key = self.space.leaves_with_key(layouts, key)
        if len(rows) == 0:
            return
        cost = self.costs.rows(rows, (table, leaf_key))
        terms = BoundTerms(self.costs, rows, cost)
        bounds = lower_bounds_s(terms, self.rules.limit_bytes, self._cutoff(cutoff_s))
        self.result.pruned["bound or memory"] += int(np.isinf(bounds).sum())
        order = np.argsort(bounds, kind="stable")
        for count, index in enumerate(order.tolist()):
            bound = float(bounds[index])
            if bound >= self._cutoff(cutoff_s):
                self.result.pruned["bound"] += int(np.isfinite(bounds[order[count:]]).sum())
                self._remember(rows, cost, table, bounds, order[count:])
                return
            if self._late():
                self.result.lower_bound_s = min(self.result.lower_bound_s, bound)
                return
            at = np.array([index])
            context = row_context(self.costs, table, rows.take(at), take(cost, at))
            candidate = self._solve(context, self._cutoff(cutoff_s))
            if candidate is not None:
                self._record(candidate)

    def _solve(self, context: RowContext, cutoff_s: float) -> Candidate | None:
        if self.target.refuses(context.strategy):
            self.result.pruned["target rules"] += 1
            return None
        self.result.evaluated += 1
        candidate = best_split(context, self.rules, cutoff_s)
        if candidate is not None and self.target.refuses(candidate.strategy, candidate.split.chunk_layers):
            self.result.pruned["target rules"] += 1
            return None
        if candidate is not None and not self._host_fits(candidate):
            self.result.pruned["host memory"] += 1
            return None
        return candidate

    def _host_fits(self, candidate: Candidate) -> bool:
        most = max(stage.host_bytes for stage in candidate.stages)
        return most <= self.costs.hardware.host_memory_bytes_per_device * 0.9

    def _record(self, candidate: Candidate) -> None:
        key = degrees(candidate)
        known = self.result.by_degrees.get(key)
        if known is None or candidate.step_time_s < known.step_time_s:
            self.result.by_degrees[key] = candidate
        if self.result.best is None or candidate.step_time_s < self.result.best.step_time_s:
            self.result.best = candidate
            self._tell("improved")

    def _remember(self, rows: StrategyRows, cost: object, table: ModelCost, bounds: Array, order: Ints) -> None:
        """Keep the most promising unsolved strategy of each set of degrees, for the alternatives."""
        if len(self._waiting) > 64:
            return
        for index in order[:200].tolist():
            if not np.isfinite(bounds[index]):
                return
            at = np.array([index])
            row = rows.take(at)
            key = tuple(int(getattr(row, name)[0]) for name in ("tp", "cp", "pp", "ep", "etp", "dp"))
            if key not in self._waiting:
                context = row_context(self.costs, table, row, take(cost, at))
                self._waiting[key] = (float(bounds[index]), context)

    def _cutoff(self, cutoff_s: float) -> float:
        return cutoff_s if self.result.best is None else min(cutoff_s, self.result.best.step_time_s)

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _tell(self, phase: str) -> None:
        if self.progress is not None:
            best = self.result.best
            self.progress(
                SearchProgress(
                    phase=phase,
                    bounded=self.result.bounded,
                    evaluated=self.result.evaluated,
                    incumbent_s=None if best is None else best.step_time_s,
                    lower_bound_s=None,
                )
            )


def memory_limit_bytes(problem: Problem, hardware: Hardware) -> float:
    """Device memory that a plan may use: total less the safety margin."""
    return hardware.memory_bytes * (1.0 - problem.constraints.memory_margin_fraction)
