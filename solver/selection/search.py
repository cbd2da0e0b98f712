"""The order of the engines: prices first, descents beside them, an exact finish on what is left.

(1) ``dual``     prices of memory, the bound, and selections decoded on the way
(2) ``descent``  independent descents from them, on a second thread while the first goes on
(3) ``cut``      values and pairs that no better selection can contain are taken out; what is left is presolved again
(4) ``branch``   when that is small: a tree over it, to the proof or its share of the time; HiGHS finishes its leaves
(5) ``cross``    a restricted problem of the values that the best local optima use, solved exactly, between descents
(3)-(5) repeat while they gain; a tree whose gap shrinks much is cut and begun anew.  A second thread whose descents
gain no more helps with the tree.  With a work limit everything runs on one thread in this order.
"""

from __future__ import annotations

import threading

from solver.selection.branch import Tree
from solver.selection.crossover import cross, neighbourhood
from solver.selection.cutting import Part, cut
from solver.selection.descent import Descents
from solver.selection.dual import Dual
from solver.selection.incumbent import Incumbent, Pool
from solver.selection.presolve.merge import Contradiction
from solver.selection.presolve.presolve import CapacityExceeded
from solver.selection.reduced import Reduced
from solver.selection.repair import repair

TREE_CELLS = 400_000
SMALL_CORE_CELLS = 20_000
"""Up to here a tree ends soon, and descents before it are time lost."""
TREE_SHARE = 0.25
DUAL_SHARE = 0.4
CUT_SHARE = 0.1
DESCENTS_BEFORE_CROSSING = 4
IDLE_ROUNDS = 2
"""Rounds of descents without a gain, after which a thread turns to the tree."""


class Search:
    """One solve after presolve."""

    def __init__(self, reduced: Reduced, incumbent: Incumbent, seed: int, threads: int) -> None:
        self.reduced, self.incumbent, self.seed = reduced, incumbent, seed
        self.threads = 1 if incumbent.work_limit is not None else max(1, threads)
        self.pool = Pool(reduced, incumbent)
        self.dual = Dual(reduced, self.pool)
        self.streams = [Descents(self.pool, self.dual.costs, seed * 1000 + k) for k in range(self.threads)]
        self.tree: Tree | None = None
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
        """Descents and crossings, and the tree when they gain no more, until the solve ends."""
        idle = 0
        try:
            while not self.finished.is_set() and not self.incumbent.stopped():
                if not self.pool.members:
                    self.finished.wait(0.01)
                    continue
                before = self.incumbent.cost
                self._descend(stream, DESCENTS_BEFORE_CROSSING)
                idle = idle + 1 if self.incumbent.cost == before else 0
                tree = self.tree
                if tree is not None and idle >= IDLE_ROUNDS:
                    self._help_branch(tree)
                    idle = 0
        except BaseException as error:
            self.failure = error
            self.incumbent.halted = True

    def _help_branch(self, tree: Tree) -> None:
        """Explore nodes until the tree is done or another one has taken its place."""
        tree.work(lambda: self.finished.is_set() or self.incumbent.stopped() or tree is not self.tree)

    def _descend(self, stream: Descents, descents: int) -> None:
        self._adopt()
        for _ in range(descents):
            if self.incumbent.stopped() or self.finished.is_set():
                return
            stream.run(lambda: self.dual.best_price)
            if stream.many:
                break
        for solve_exactly in (cross, neighbourhood):
            if self.incumbent.stopped():
                return
            solve_exactly(self.pool, stream, self.dual)

    def _adopt(self) -> None:
        """What the tree found becomes a start for descents."""
        with self.incumbent.lock:
            cost, choice = self.incumbent.cost, self.incumbent.choice
            known = min((member for member, _ in self.pool.members), default=None)
        if cost is not None and choice is not None and (known is None or cost < known):
            values = self.reduced.values_of(choice())
            if values is not None:
                self.pool.offer(values, "branching")

    def _lead(self) -> bool:
        self._ascend(self.dual, DUAL_SHARE)
        whole = Part(self.reduced, self.dual, self.dual.prove().bound)
        self.incumbent.raise_bound(whole.bound, "relaxation")
        if self.incumbent.cost is None:
            repair(self.dual)
        attempt, seen, part = 0, None, whole
        while not self.incumbent.stopped():
            cost = self.incumbent.cost
            if seen is None or self._overtaken(seen) or (self.tree is None and cost != seen):
                try:
                    part = cut(part, lambda dual: self._ascend(dual, CUT_SHARE))
                except (Contradiction, CapacityExceeded):
                    if cost is None:
                        return False
                    self.incumbent.raise_bound(cost, "elimination")
                    return True
                self.incumbent.raise_bound(part.bound, "elimination")
                seen, attempt = cost, 0
                self.tree = Tree(part, self.incumbent) if part.core.num_cells <= TREE_CELLS else None
            if self.tree is None or (self.threads == 1 and part.core.num_cells > SMALL_CORE_CELLS):
                self._descend(self.streams[0], DESCENTS_BEFORE_CROSSING if self.tree is None else 1)
            if self.tree is not None and not self._overtaken(seen) and not self._branch(self.tree, seen, attempt):
                return False
            attempt += 1
        return True

    def _ascend(self, dual: Dual, share: float) -> None:
        """Better prices until they converge or their share of the limit is spent."""
        until = self.incumbent.share_spent() + share * (1.0 - self.incumbent.share_spent())
        while not dual.finished and not self.incumbent.stopped() and self.incumbent.share_spent() < until:
            dual.step()
            self.incumbent.spend(16 * dual.reduced.num_cells)

    def _branch(self, tree: Tree, cost_before: int | None, attempt: int) -> bool:
        """A tree over what is left, for its share of the time; False where it is proved that nothing fits at all."""
        incumbent = self.incumbent
        small = tree.root.core.num_cells <= SMALL_CORE_CELLS or cost_before is None
        share = 1.0 if small else min(1.0, TREE_SHARE * 2**attempt)
        until = incumbent.share_spent() + share * (1.0 - incumbent.share_spent())
        tree.work(lambda: incumbent.stopped() or incumbent.share_spent() >= until or self._overtaken(cost_before))
        if tree.done and incumbent.cost is None:
            return False
        if tree.done:
            incumbent.raise_bound(incumbent.cost or 0, "branching")
        return True

    def _overtaken(self, cost_before: int | None) -> bool:
        """Whether the gap that a core was cut for has shrunk so much in the meantime that cutting pays again."""
        cost, bound = self.incumbent.cost, self.incumbent.bound
        if cost is None or bound is None:
            return False
        return cost_before is None or cost_before - cost > 0.2 * (cost_before - bound)
