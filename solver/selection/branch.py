"""The search for a cheaper selection: a tree of parts, each split where its relaxation is undecided.

Node     a part of all selections.  Its prices begin at those of the node above and ascend for ``NODE_STEPS``; ``cut``
         takes out what reaches the incumbent.  A node is done when nothing is left, when its bound reaches the
         incumbent, or when so few pairs are left (``LEAF_PAIRS``) that HiGHS finishes it (``core_milp``).
Split    of the ``candidates`` (two halves of one class's values) the one with the largest product of the two halves'
         gains, after ``TRIAL_STEPS`` of ascent each.  The half with the lower bound is explored first, depth first.
Proof    bounds are the exact ones of ``exact_bound`` and of ``core_milp``; the halves of a split make up the whole, so
         the least bound of all nodes that are not done bounds every selection cheaper than the incumbent.
Nodes that HiGHS could not finish in its share are split like others.  Several threads may work on one tree.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.selection.branch_candidates import Split, candidates
from solver.selection.core_milp import CoreAnswer, solve_core
from solver.selection.cutting import DIFFUSION_ROUNDS, Part, ascend_steps, cut, inherited
from solver.selection.dual import Dual
from solver.selection.incumbent import Incumbent
from solver.selection.presolve.merge import Contradiction
from solver.selection.presolve.presolve import CapacityExceeded, restrict, simplified

LEAF_PAIRS = 12_000
LEAF_S = 4.0
LEAF_NODES = 400
NODE_STEPS = 60
CUT_STEPS = 40
TRIAL_STEPS = 10


@dataclass(frozen=True)
class Node:
    """The values of a part that are alive here (None: all of them); ``bound`` is proved for the node."""

    part: Part
    alive: NDArray[np.bool_] | None
    bound: int
    depth: int


class Tree:
    """Nodes that are not done yet."""

    def __init__(self, root: Part, incumbent: Incumbent, leaf_pairs: int = LEAF_PAIRS) -> None:
        self.root, self.incumbent, self.leaf_pairs = root, incumbent, leaf_pairs
        self.open: list[Node] = [Node(root, None, root.bound, 0)]
        self.active: dict[int, Node] = {}
        self.explored = 0
        self.changed = threading.Condition()

    @property
    def done(self) -> bool:
        """Whether every selection cheaper than the incumbent is ruled out."""
        with self.changed:
            return not self.open and not self.active

    def work(self, stopped: Callable[[], bool]) -> None:
        """Explore nodes until none is left or ``stopped``; callable from several threads."""
        while not stopped():
            with self.changed:
                if not self.open:
                    if not self.active:
                        return
                    self.changed.wait(0.02)
                    continue
                node = self.open.pop()
                self.active[threading.get_ident()] = node
            children = [node]  # what stays open if exploring ends early
            try:
                children = self._explore(node, stopped)
            finally:
                with self.changed:
                    del self.active[threading.get_ident()]
                    self.open += children
                    self.explored += 1
                    self._report()
                    self.changed.notify_all()

    def _report(self) -> None:
        """The least bound of what is left is a bound on everything."""
        left = [node.bound for node in (*self.open, *self.active.values())]
        cost = self.incumbent.cost
        if left or cost is not None:
            self.incumbent.raise_bound(min([*left, *([] if cost is None else [cost])]), "branching")

    def _explore(self, node: Node, stopped: Callable[[], bool]) -> list[Node]:
        """The nodes that take this one's place: none, its two halves, or itself where the time is over."""
        if self._reached(node.bound):
            return []
        self.incumbent.spend(100 * node.part.core.num_cells)
        try:
            part = self._narrowed(node)
        except (Contradiction, CapacityExceeded):
            return []
        if part.settled or self._reached(part.bound):
            return []
        whole = Node(part, None, part.bound, node.depth)
        if stopped():
            return [whole]
        if part.num_pairs <= self.leaf_pairs:
            answer = self._leaf(part, stopped)
            if answer.infeasible:
                return []
            whole = Node(part, None, max(part.bound, answer.bound or part.bound), node.depth)
            if self._reached(whole.bound):
                return []
        return self._halves(whole, stopped)

    def _reached(self, bound: int) -> bool:
        cost = self.incumbent.cost
        return cost is not None and bound >= cost

    def _narrowed(self, node: Node) -> Part:
        """The node's tables, prices and bound."""
        part = node.part
        if node.alive is not None:
            core = simplified(restrict(part.core, node.alive), self.incumbent.stopped)
            part = inherited(core, part.dual, node.bound)
            if part.settled:
                return part
            ascend_steps(part.dual, NODE_STEPS)
        return cut(part, lambda dual: ascend_steps(dual, CUT_STEPS))

    def _leaf(self, part: Part, stopped: Callable[[], bool]) -> CoreAnswer:
        """HiGHS on what is left."""
        incumbent, cost = self.incumbent, self.incumbent.cost
        limits = incumbent.limits(stopped, LEAF_S, LEAF_NODES)
        answer = solve_core(part.core, part.dual.reduced_costs(), cost, limits)
        incumbent.spend(1000 * part.core.num_cells)
        if answer.values is not None:
            part.dual.pool.offer(answer.values, "branching")
        return answer

    def _halves(self, node: Node, stopped: Callable[[], bool]) -> list[Node]:
        """The two halves of the best split, the one to explore first last."""
        part, cost = node.part, self.incumbent.cost
        proof = part.dual.prove(DIFFUSION_ROUNDS)
        costs = part.dual.reduced_costs(DIFFUSION_ROUNDS)
        excess = proof.excess()
        gap = float(excess[np.isfinite(excess)].max() if cost is None else cost - proof.bound)
        gap = max(gap, 1.0)
        best: tuple[float, Split, float, float] | None = None
        for split in candidates(part.core, excess, costs, gap):
            first, second = self._trial(part.dual, split.alive), self._trial(part.dual, split.other)
            least = 1e-6 * gap
            score = max(least, min(gap, first)) * max(least, min(gap, second))
            if best is None or score > best[0]:
                best = (score, split, first, second)
            if stopped():
                return [node]
        assert best is not None
        _, split, first, second = best
        bound = max(node.bound, proof.bound)
        halves = [Node(part, alive, bound, node.depth + 1) for alive in (split.alive, split.other)]
        return halves if second < first else halves[::-1]

    def _trial(self, dual: Dual, alive: NDArray[np.bool_]) -> float:
        """How much higher the bound is with these values."""
        trial = dual.without(alive)
        ascend_steps(trial, TRIAL_STEPS)
        return trial.best - dual.best
