"""In which order are the engines asked?  Prices and bounds first, descents beside them, an exact finish on what is left.

(1) ``dual``     prices of memory, the bound, and selections decoded on the way
(2) ``descent``  independent descents from them, on a second thread while the first goes on
(3) ``cut``      values and pairs that no better selection can contain are taken out; what is left is presolved again
(4) ``core``     when that is small: HiGHS, to the proof or its share of the time
(5) ``cross``    a restricted problem of the values that the best local optima use, solved exactly, between descents
(3)-(5) repeat while they gain.  With a work limit everything runs on one thread in this order.
"""

from __future__ import annotations

import threading

import numpy as np

from solver.selection.core_milp import CoreLimits, solve_core
from solver.selection.crossover import cross, neighbourhood
from solver.selection.descent import Descents
from solver.selection.dual import Dual
from solver.selection.incumbent import Incumbent, Pool
from solver.selection.presolve.merge import Contradiction
from solver.selection.presolve.presolve import CapacityExceeded, restrict, simplified
from solver.selection.reduced import Reduced
from solver.selection.repair import repair

CORE_CELLS = 150_000
SMALL_CORE_CELLS = 20_000
DUAL_SHARE = 0.4
DESCENTS_BEFORE_CROSSING = 4
DIFFUSION_ROUNDS = 10
WORK_NODES = 200
"""HiGHS's nodes an attempt where work is limited instead of time."""


class Search:
    """One solve after presolve."""

    def __init__(self, reduced: Reduced, incumbent: Incumbent, seed: int, threads: int) -> None:
        self.reduced, self.incumbent, self.seed = reduced, incumbent, seed
        self.threads = 1 if incumbent.work_limit is not None else max(1, threads)
        self.pool = Pool(reduced, incumbent)
        self.dual = Dual(reduced, self.pool)
        self.streams = [Descents(self.pool, self.dual.costs, seed * 1000 + k) for k in range(self.threads)]
        self.finished = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> bool:
        """Search until proved or stopped; False where it is proved that nothing fits."""
        helpers = [threading.Thread(target=self._help, args=(stream,)) for stream in self.streams[1:]]
        for helper in helpers:
            helper.start()
        try:
            feasible = self._lead()
        finally:
            self.finished.set()
            for helper in helpers:
                helper.join()
        if self.failure is not None:
            raise self.failure
        return feasible

    def _help(self, stream: Descents) -> None:
        """Descents and crossings until the solve ends."""
        try:
            while not self.finished.is_set() and not self.incumbent.stopped():
                if not self.pool.members:
                    self.finished.wait(0.01)
                    continue
                self._descend(stream)
        except BaseException as error:
            self.failure = error
            self.incumbent.halted = True

    def _descend(self, stream: Descents) -> None:
        for _ in range(DESCENTS_BEFORE_CROSSING):
            if self.incumbent.stopped() or self.finished.is_set():
                return
            stream.run(self.dual.best_price)
        cross(self.pool, stream, self.dual)
        neighbourhood(self.pool, stream, self.dual)

    def _lead(self) -> bool:
        self._ascend(self.dual, DUAL_SHARE)
        self.incumbent.raise_bound(self.dual.prove().bound, "relaxation")
        if self.incumbent.cost is None:
            repair(self.dual)
        core, dual, attempt, seen = self.reduced, self.dual, 0, None
        while not self.incumbent.stopped():
            if self.incumbent.cost != seen or self.incumbent.cost is None:
                seen = self.incumbent.cost
                try:
                    core, dual = self._cut(self.reduced, self.dual)
                except (Contradiction, CapacityExceeded):
                    if self.incumbent.cost is None:
                        return False
                    self.incumbent.raise_bound(seen or 0, "elimination")
                    return True
            small = core.num_cells <= SMALL_CORE_CELLS
            if not small:
                self._descend(self.streams[0])
            stale = seen is not None and self.incumbent.cost != seen
            if (small or (core.num_cells <= CORE_CELLS and not stale)) and not self._finish(core, dual, attempt):
                return False
            attempt += 1
        return True

    def _ascend(self, dual: Dual, share: float) -> None:
        """Better prices until they converge or their share of the limit is spent."""
        until = self.incumbent.share_spent() + share * (1.0 - self.incumbent.share_spent())
        while not dual.finished and not self.incumbent.stopped() and self.incumbent.share_spent() < until:
            dual.step()
            self.incumbent.spend(16 * dual.reduced.num_cells)

    def _cut(self, reduced: Reduced, dual: Dual) -> tuple[Reduced, Dual]:
        """What a better selection may still contain, as long as cutting again with a new bound shrinks it."""
        core = reduced
        while not self.incumbent.stopped():
            cost = self.incumbent.cost
            if cost is None:
                return core, dual
            proof = dual.prove(DIFFUSION_ROUNDS)
            self.incumbent.raise_bound(min(proof.bound, cost), "elimination")
            smaller = simplified(restrict(core, proof.improving(cost), dual.table_below(cost, DIFFUSION_ROUNDS)))
            shrunk = smaller.num_cells + smaller.unary.size < 0.7 * (core.num_cells + core.unary.size)
            core, before = smaller, dual
            dual = Dual(core, Pool(core, self.incumbent))
            dual.inherit(before)
            if core.num_classes == 0:
                self._settled(core)
                return core, dual
            self._ascend(dual, 0.1)
            if not shrunk:
                break
        return core, dual

    def _overtaken(self, cost_before: int | None) -> bool:
        """Whether the gap that a core was cut for has become much smaller in the meantime, so that cutting pays again."""
        cost, bound = self.incumbent.cost, self.incumbent.bound
        if cost is None or bound is None or self.incumbent.work_limit is not None:
            return False
        return cost_before is None or cost_before - cost > 0.2 * (cost_before - bound)

    def _settled(self, core: Reduced) -> None:
        """Nothing is left to decide: the one selection left, or the incumbent, is the optimum."""
        Pool(core, self.incumbent).offer(np.zeros(0, np.int64), "elimination")
        if self.incumbent.cost is not None:
            self.incumbent.raise_bound(min(core.constant, self.incumbent.cost), "elimination")

    def _finish(self, core: Reduced, dual: Dual, attempt: int) -> bool:
        """HiGHS on the core; False where it is proved that nothing fits at all."""
        if core.num_classes == 0:
            self._settled(core)
            return True
        small = core.num_cells <= SMALL_CORE_CELLS
        share = 1.0 if small or self.incumbent.cost is None else min(1.0, 0.25 * 2**attempt)
        until = self.incumbent.left_s() * (1.0 - share)
        cost_before = self.incumbent.cost

        def interrupted() -> bool:
            return self.incumbent.stopped() or self.incumbent.left_s() < until or self._overtaken(cost_before)

        nodes = WORK_NODES * 4**attempt if self.incumbent.work_limit is not None else None
        limits = CoreLimits(interrupted, nodes, self.threads if small else 1)
        answer = solve_core(core, dual.reduced_costs(), cost_before, None, limits)
        self.incumbent.spend(1000 * core.num_cells)
        if answer.values is not None:
            dual.pool.offer(answer.values, "core")
            self.pool.offer(core.values_in(answer.values, self.reduced), "core")
        if answer.infeasible:
            if cost_before is None:
                return False
            self.incumbent.raise_bound(cost_before, "core")
        elif answer.bound is not None:
            self.incumbent.raise_bound(answer.bound if cost_before is None else min(answer.bound, cost_before), "core")
        return True
