"""The best strategy, with proof: best-bound-first over columns of strategies, for one number of devices.

1. Bound every core (``planner.search.space``) by what everything under it shares.
2. In order of that bound, write out layouts, bound them with memory, then their leaves, and bound each leaf.
3. In order of the leaf bounds, solve the inner problem exactly (``planner.search.split``).
4. Stop when the next bound is not below the incumbent: nothing left can be faster.

When stopped early, the smallest bound not yet examined is a lower bound of the whole space.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from functools import cached_property

import numpy as np

from planner.predict.candidate import Candidate
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.model_cost import ModelCost
from planner.predict.cost.row_cost import CostModel
from planner.question.problem import Problem
from planner.search.alternatives import Alternatives, Postponed
from planner.search.backend_rules import BackEndRules
from planner.search.batches import FIRST_BATCH, FIRST_LAYOUTS, MANY_CORES, MANY_LAYOUTS, MOST_LAYOUTS, NEXT_BATCH
from planner.search.core_waves import CoreWaves, Wave
from planner.search.dealt_bounds import DealtBounds
from planner.search.dealt_later import Collected, DealtLater, Met
from planner.search.early_rules import OF_CORES, OF_LAYOUTS, OF_SHARDINGS, EarlyRules, KeptVerdicts
from planner.search.leaves import Leaves
from planner.search.line_split import LeftOpen
from planner.search.look_ahead import JUST_ABOVE, guesses_s, plain_part, promising_cores, promising_layouts
from planner.search.mechanisms import Part
from planner.search.memory_bound import layout_bounds_s, relief_bounds_s
from planner.search.options import Incumbent, Progress, SearchOptions
from planner.search.row_context import RowContext, joined
from planner.search.search_result import Pruned, SearchResult, degrees
from planner.search.setups import SharedSetups, layouts_by_setup, shardings_by_setup
from planner.search.space import Space
from planner.search.split import SplitSolver, best_split, even_split, near_even_split
from planner.search.split_limits import split_rules
from planner.search.stage_capacity import MemoryLimits
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Strategy
from solver.arrays import Array, Ints


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
        self.rules = split_rules(problem, hardware)
        self.limits = MemoryLimits(self.rules.limit_bytes, self.rules.host_limit_bytes)
        self.backend_rules = BackEndRules(problem)
        self.early_rules = EarlyRules(self.backend_rules, self._strategy)
        self._verdicts = KeptVerdicts(self.backend_rules, self._strategy)
        self.result = SearchResult()
        self.deadline = None if options.time_limit_s is None else time.monotonic() + options.time_limit_s
        self.fastest_s = float("inf")
        """Step time of the fastest plan that this search found."""
        self.incumbent, self.near = Incumbent(), 0.0
        """The fastest plan of all searches that share it, and how near to its own optimum this search must come where
        it is not the one that finds that plan (``planner.search.across_backends``)."""
        self.plain: Part | None = None
        """The part of the space that is searched; None = all of it."""
        self.collected: Collected | None = None
        self._reached_s: float | None = None
        self._ahead: Postponed | None = None
        self._surely: Candidate | None = None
        self._left, self._later = LeftOpen(), DealtLater()
        # Where the recommended plan is preferred it may take the place of one of them.
        beside = problem.objective.prefer == "recommended"
        count = options.top_k + beside if options.top_k else 0
        self.alternatives = Alternatives(count, self.result, keeps_near=beside and count > 0)

    def start_again(self, incumbent: Incumbent) -> None:
        """Forget what was found; only a plan that is faster than ``incumbent`` counts."""
        self.result = SearchResult()
        self.alternatives = Alternatives(0, self.result)
        self.incumbent, self.near, self.fastest_s = incumbent, 1.0, float("inf")
        self._reached_s = self._ahead = self._surely = None
        self._left, self._later = LeftOpen(), DealtLater()
        # What this search learns stays its own: what another one finds does not hang on which ran first.
        self.early_rules = copy(self.early_rules)

    def run(self, cutoff_s: float = float("inf")) -> SearchResult:
        """Search for a candidate faster than ``cutoff_s``."""
        result = self.result
        result.bounded = int(self._leaf_counts.sum())
        self.descend_waves(cutoff_s)
        self._deal_later(cutoff_s)
        result.refused = self.space.pruned
        result.enumerated = result.bounded
        result.pruned += self.space.illegal
        # Most strategies fall with a core, layout or sharding whose bound is too slow, and are never written out.
        rest = Pruned.SHARED_BOUND if result.complete else Pruned.NOT_EXAMINED
        result.pruned[rest] = result.enumerated - result.evaluated - sum(result.pruned.values())
        surely, best = self._surely, result.best
        if surely is not None and (best is None or surely.step_time_s < best.step_time_s):
            # The time ran out before the search came to it, or it needed to come near its own optimum only, and what
            # it left out for this plan's sake may have been this plan.
            self._record(surely)
        # What was left out was not below the cutoff of its moment, and a cutoff only falls.
        result.lower_bound_s = min(result.lower_bound_s, self._left.bound_s, self._cutoff(cutoff_s))
        result.left_open = self._left.bound_s < self._cutoff(cutoff_s)
        return result

    @cached_property
    def waves(self) -> CoreWaves:
        """All cores with their costs and bounds."""
        return CoreWaves(self.costs, self.space.cores, self.rules.limit_bytes)

    @cached_property
    def _leaf_counts(self) -> Ints:
        """Complete strategies under each core."""
        return self.space.leaf_counts(self.space.cores)

    def descend_waves(self, cutoff_s: float) -> None:
        """Descend into the cores, a wave at a time, until no later core can be the best plan or an alternative."""
        number = 0
        while (wave := self.waves.wave(number)) is not None:
            here = self._leaf_counts[wave.index]
            self.result.pruned[Pruned.NO_ROOM] += int(here[np.isinf(wave.cores.bounds)].sum())
            if not self._descend(wave, here, cutoff_s):
                return
            if wave.rest_s >= self.wanted_s(cutoff_s):
                break
            number += 1
        self.result.complete = True

    def _descend(self, wave: Wave, counts: Ints, cutoff_s: float) -> bool:
        """Write out cores in order of their bounds, a batch at a time, until none can beat the incumbent.

        False when out of time.
        """
        self._ahead, bounds = wave.cores, wave.cores.bounds
        if self.plain is not None:
            bounds = np.where(self.plain.keeps(wave.cores.rows), bounds, np.inf)
        order = np.argsort(bounds, kind="stable")
        order = order[: int(np.isfinite(bounds).sum())]
        running, written = np.cumsum(counts[order]), np.zeros(len(bounds), dtype=np.bool_)
        position, batch = 0, FIRST_BATCH
        while position < len(order):
            best = self._cutoff(cutoff_s)
            self._reached_s = min(float(bounds[order[position]]), wave.rest_s)
            self._tell("searching")
            if bounds[order[position]] >= best:
                break
            if self.late():
                self._not_examined(bounds[order[position:]], wave.rest_s)
                return False
            done = running[position - 1] if position else 0
            stop = max(position + 1, int(np.searchsorted(running, done + batch, side="right")))
            picked = order[position:stop]
            picked = picked[bounds[picked] < best]
            written[picked] = True
            refused = self.early_rules.refused(wave.cores.rows.take(picked), OF_CORES)
            self.result.pruned[Pruned.BACKEND_RULES] += int(counts[picked[refused]].sum())
            picked = picked[~refused]
            layouts = self.bounded_layouts(wave.cores.take(picked), cutoff_s)
            if not self.layouts_in_order(layouts, cutoff_s):
                self._not_examined(bounds[order[stop:]], wave.rest_s)
                return False
            position, batch = stop, NEXT_BATCH
        self.alternatives.postpone(self.alternatives.cores, wave.cores, ~written, self._cutoff(cutoff_s))
        return True

    def bounded_layouts(self, cores: Postponed, cutoff_s: float) -> Postponed:
        """The layouts of some cores with their bounds; infinity where neither the best plan nor an alternative is."""
        layouts, key = self.space.layouts(cores.rows, cores.key)
        if self.plain is not None:
            kept = self.plain.keeps(layouts)
            layouts, key = layouts.take(kept), key[kept]
        refused = self.early_rules.refused(layouts, OF_LAYOUTS)
        if refused.any():
            self.result.pruned[Pruned.BACKEND_RULES] += self.space.leaves_of_layouts(layouts.take(refused))
            layouts, key = layouts.take(~refused), key[~refused]
        if len(layouts) == 0:
            return Postponed(layouts, key, np.zeros(0), cores.table)
        shared, worth_s = layouts_by_setup(self.costs, layouts, (cores.table, key)), self.wanted_s(cutoff_s)
        at, bounds = np.flatnonzero(shared.loose_s < worth_s), np.full(len(layouts), np.inf)
        if np.isfinite(worth_s):
            # Where it is known how fast a plan can be, memory is asked of the shardings: few of them are that fast.
            bounds[at] = shared.loose_s[at]
        for here, reliefs in self._parts(lambda: layouts.take(at), at) if np.isinf(worth_s) else ():
            bounds[here] = layout_bounds_s(shared.bound_terms(here), cores.table.layers, reliefs, self.limits, worth_s)
        return Postponed(layouts, key, bounds, cores.table)

    def layouts_in_order(self, layouts: Postponed, cutoff_s: float) -> bool:
        """Bound the leaves of some layouts, a batch at a time; False when out of time."""
        bounds = layouts.bounds
        order, written = np.argsort(bounds, kind="stable"), np.zeros(len(bounds), dtype=np.bool_)
        start, size = 0, FIRST_LAYOUTS if np.isinf(self._cutoff(cutoff_s)) else MOST_LAYOUTS
        while start < len(order):
            # A small space may be over after its first layouts.  Where another back-end is faster so far, its plan cuts
            # this search as well as a look ahead would.
            ahead = self._ahead if start or (self._ahead and len(self._ahead.rows) > MANY_CORES) else None
            if ahead is not None and np.isinf(cutoff_s) and self.fastest_s <= self.incumbent.step_time_s:
                self._look_ahead(ahead, cutoff_s)
            picked = order[start : start + size]
            picked = picked[bounds[picked] < self._cutoff(cutoff_s)]
            if len(picked) == 0:
                break
            written[picked] = True
            if not self.leaves(layouts.rows.take(picked), layouts.key[picked], layouts.table, cutoff_s):
                self._not_examined(bounds[order[start + size :]])
                return False
            start, size = start + size, min(4 * size, MOST_LAYOUTS)
        self.alternatives.postpone(self.alternatives.layouts, layouts, ~written, self._cutoff(cutoff_s))
        return True

    def _look_ahead(self, cores: Postponed, cutoff_s: float) -> None:
        """Cut the search by what a small part of the space can surely do (``planner.search.look_ahead``)."""
        ahead = copy(self)
        self._ahead = ahead._ahead = ahead.progress = None
        ahead.space, ahead.result = plain_part(self.space), SearchResult()
        ahead.alternatives, ahead._later = Alternatives(0, ahead.result), DealtLater()
        # What it finds is told when the whole search finds it, so that equals are found in the same order.
        ahead.incumbent = Incumbent(self.incumbent.step_time_s)
        layouts = promising_layouts(ahead.bounded_layouts(promising_cores(cores), self._cutoff(cutoff_s)))
        for below_s in guesses_s(layouts, cutoff_s):
            if ahead.result.best is None:
                ahead.leaves(layouts.rows, layouts.key, layouts.table, below_s)
        self._surely = ahead.result.best
        for key, candidate in ahead.result.by_degrees.items():
            self.result.by_degrees.setdefault(key, candidate)

    def leaves(self, layouts: StrategyRows, key: Ints, table: ModelCost, cutoff_s: float) -> bool:
        """Bound shardings and then leaves of some layouts, and solve the promising ones; False when out of time."""
        # An offloaded twin differs in the optimizer's place alone, where no other library shards offloaded states: in
        # large batches it is costed only where that still looks fast enough.
        alike = not self.costs.hardware.physics.deepspeed_where_needed
        twins = alike and self.space.offloads == [0, 1] and len(layouts) > MANY_LAYOUTS
        offloads, keyed = (0,) if twins else None, (table, key)
        shared = shardings_by_setup(
            self.costs, self.space, layouts, keyed, offloads, self.wanted_s(cutoff_s), part=self.plain
        )
        if shared is None:
            return True
        if not self._bounded_leaves(shared, cutoff_s):
            return False
        offloaded = shared.offloaded(self.wanted_s(cutoff_s), self.plain) if twins else None
        return offloaded is None or self._bounded_leaves(offloaded, cutoff_s)

    def _bounded_leaves(self, shared: SharedSetups, cutoff_s: float) -> bool:
        """Bound the leaves of some shardings and solve the promising ones; False when out of time."""
        at = shared.promising(self.wanted_s(cutoff_s), self.rules.limit_bytes)
        return all(self._bounded_part(shared, *part, cutoff_s) for part in self._parts(lambda: shared.rows(at), at))

    def _bounded_part(self, shared: SharedSetups, at: Ints, reliefs: list[int], cutoff_s: float) -> bool:
        """The same of some rows under some reliefs."""
        rows = shared.rows(at)
        refused = self.early_rules.refused(rows, OF_SHARDINGS)
        if refused.any():
            self.result.pruned[Pruned.BACKEND_RULES] += int(refused.sum()) * len(reliefs)
            at, rows = at[~refused], rows.take(~refused)
        terms = shared.bound_terms(at, rows)
        bounds = relief_bounds_s(terms, shared.table.layers, reliefs, self.limits, self.wanted_s(cutoff_s))
        self.result.pruned[Pruned.NO_FAST_FIT] += int(np.isinf(bounds).sum())
        return self.solve_in_order(Leaves(terms, reliefs, shared.table, bounds, at), cutoff_s)

    def solve_in_order(self, leaves: Leaves, cutoff_s: float) -> bool:
        """Solve leaves from the lowest bound up until no bound is below the incumbent; False when out of time."""
        dealt = DealtBounds(leaves, self.rules, lambda: self.wanted_s(cutoff_s))
        left = np.ones(len(leaves.order), dtype=np.bool_)
        rest: Leaves | None = None
        for place, bound in dealt.closest_first(lambda: self._cutoff(cutoff_s)):
            if self.late():
                self.result.pruned[Pruned.OWN_BOUND] += dealt.too_slow
                self._not_examined(np.array([bound]), dealt.rest_s)
                return False
            left[place] = False
            index = leaves.order[place : place + 1]
            row = leaves.rows(index)
            if self._verdicts.refuses(row):
                self.result.pruned[Pruned.BACKEND_RULES] += 1
                if self.early_rules.learn(self._strategy(row, 0)):
                    rest, left = self._not_refused(leaves, dealt), left[dealt.seen]
                    dealt.forget_unseen()
                    break
                continue
            self._take_up(Met(bound, leaves, index, row), cutoff_s)
        else:
            self.result.pruned[Pruned.OWN_BOUND] += int((~dealt.seen).sum())
        self.result.pruned[Pruned.OWN_BOUND] += dealt.too_slow
        self.alternatives.remember(leaves, dealt, left, self._verdicts.refuses, self.wanted_s(cutoff_s))
        return rest is None or self.solve_in_order(rest, cutoff_s)

    def _take_up(self, met: Met, cutoff_s: float) -> None:
        """Solve a strategy; one that may be dealt in any way near-evenly first, and exactly later."""
        if self.collected is not None:
            self.collected.append(met)
            return
        context, split = met.context(self.costs), best_split
        if context.strategy.vpp == 1 and context.strategy.pp > 1 and self._may_be_uneven(context):
            self._later.add(met.bound_s, context)
            split = near_even_split
        if (candidate := self.solve(context, self._cutoff(cutoff_s), split)) is not None:
            self._record(candidate)

    def run_in(self, collected: Collected, cutoff_s: float) -> SearchResult:
        """``run`` in those of some strategies, collected for a part that holds the one searched, that are of it."""
        kept = self.plain is None or not collected or self.plain.keeps(joined([each.row for each in collected]))
        for met, here in zip(collected, np.broadcast_to(kept, len(collected)).tolist(), strict=True):
            if here and met.bound_s < self._cutoff(cutoff_s) and not self.late():
                self._take_up(met, cutoff_s)
        self._deal_later(cutoff_s)
        return self.result

    def _not_refused(self, leaves: Leaves, dealt: DealtBounds) -> Leaves:
        """Cut the leaves that were not seen out of the order; those of them that no rule is known to refuse."""
        rest = leaves.cut(~dealt.seen)
        refused = self.early_rules.refused(leaves.terms.rows, OF_SHARDINGS)[rest.order % len(leaves.terms.rows)]
        self.result.pruned[Pruned.BACKEND_RULES] += int(refused.sum())
        rest.order = rest.order[~refused]
        return rest

    def _parts(self, rows: Callable[[], StrategyRows], at: Ints) -> list[tuple[Ints, list[int]]]:
        """Rows at places ``at``, in parts, each with the reliefs that may be chosen for it."""
        reliefs = self.space.relief_codes
        parts = [(at, reliefs)] if self.plain is None else self.plain.parts(rows(), at, reliefs)
        return [(here, codes) for here, codes in parts if len(here) and codes]

    def _may_be_uneven(self, context: RowContext) -> bool:
        return not self.rules.even and (self.plain is None or self.plain.may_be_uneven(context.row))

    def _not_examined(self, bounds: Array, rest_s: float = np.inf) -> None:
        """What is left when time runs out bounds the whole space from below; ``rest_s``: the bound of later waves."""
        self.result.lower_bound_s = min(self.result.lower_bound_s, float(bounds.min(initial=rest_s)))

    def _strategy(self, rows: StrategyRows, at: int) -> Strategy:
        return rows.strategy(at, self.costs.reliefs)

    def _deal_later(self, cutoff_s: float) -> None:
        """Deal the layers exactly where only the near-even dealing was looked at."""
        waiting = self._later.below(lambda: self._cutoff(cutoff_s))
        for bound, context in waiting:
            if self.late():
                self._not_examined(np.array([bound]))
                self.result.complete = False
                self.result.evaluated -= 1 + sum(1 for _ in waiting)
                return
            candidate = best_split(context, self.rules, self._cutoff(cutoff_s), self._left)
            if candidate and not self.backend_rules.refuses(candidate.strategy, candidate.split.chunk_layers):
                self._record(candidate)

    def solve(self, context: RowContext, cutoff_s: float, split: SplitSolver = best_split) -> Candidate | None:
        """The best plan of one strategy that is faster than ``cutoff_s`` and that the back-end runs."""
        self.result.evaluated += 1
        candidate = (split if self._may_be_uneven(context) else even_split)(context, self.rules, cutoff_s, self._left)
        if candidate is not None and self.backend_rules.refuses(candidate.strategy, candidate.split.chunk_layers):
            # Where a back-end takes equal chunks only (with some schedules and offloads), that dealing may still do.
            candidate = even_split(context, self.rules, cutoff_s)
        if candidate is not None and self.backend_rules.refuses(candidate.strategy, candidate.split.chunk_layers):
            self.result.pruned[Pruned.BACKEND_RULES] += 1
            self.result.evaluated -= 1
            return None
        return candidate

    def _record(self, candidate: Candidate) -> None:
        key = degrees(candidate)
        known = self.result.by_degrees.get(key)
        if known is None or candidate.step_time_s < known.step_time_s:
            self.result.by_degrees[key] = candidate
        self.fastest_s = min(self.fastest_s, candidate.step_time_s)
        self.incumbent.step_time_s = min(self.incumbent.step_time_s, candidate.step_time_s)
        if self.result.best is None or candidate.step_time_s < self.result.best.step_time_s:
            self.result.best = candidate
            self._tell("improved")

    def wanted_s(self, cutoff_s: float) -> float:
        """Bound up to which strategies are of use: the incumbent, a little more while alternatives are wanted."""
        return self.alternatives.wanted_below_s(self._cutoff(cutoff_s))

    def _cutoff(self, cutoff_s: float) -> float:
        """Bound from which strategies are left out: ``planner.search.across_backends``."""
        surely_s = float("inf") if self._surely is None else self._surely.step_time_s * JUST_ABOVE
        own_s = min(cutoff_s, self.fastest_s, surely_s)
        if own_s <= self.incumbent.step_time_s:
            return own_s
        # Where only the fastest plan of all counts own_s may be infinite.
        return max(self.incumbent.step_time_s, own_s * (1.0 - self.near) if self.near < 1.0 else 0.0)

    def late(self) -> bool:
        """Whether the time is over or whoever asked has enough."""
        stopped = self.options.stop is not None and self.options.stop()
        return stopped or (self.deadline is not None and time.monotonic() > self.deadline)

    def _tell(self, phase: str) -> None:
        if self.progress is not None:
            self.progress(self.result.snapshot(phase, self._reached_s))
