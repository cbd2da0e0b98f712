"""What a selection cheaper than the incumbent may still contain: cut, presolve what is left, and cut again.

(1) after evening out min-marginals, values and pairs that cost the incumbent or more go (``exact_bound``)
(2) what is left is shrunk (``restrict``, ``simplified``); prices and messages are carried over (``inheritance``)
(3) prices are improved again by ``ascend``
until a round leaves more than ``WORTHWHILE`` of what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solver.selection.dual import Dual
from solver.selection.incumbent import Pool
from solver.selection.presolve.classes import NEVER
from solver.selection.presolve.presolve import restrict, simplified
from solver.selection.reduced import Reduced

DIFFUSION_ROUNDS = 10
WORTHWHILE = 0.7


@dataclass(frozen=True)
class Part:
    """Part of all selections: its tables, its dual, and an exact bound on every selection in it.

    ``settled``: at most one selection was left in it, and that was offered.
    """

    core: Reduced
    dual: Dual
    bound: int

    @property
    def settled(self) -> bool:
        """Whether nothing is left to decide."""
        return self.core.num_classes == 0

    @property
    def num_pairs(self) -> int:
        """Permitted pairs."""
        return int(np.count_nonzero(self.core.table < NEVER))


def inherited(core: Reduced, before: Dual, bound: int) -> Part:
    """A part with the prices and messages of what it was made from; a settled one offers its selection."""
    dual = Dual(core, Pool(core, before.pool.incumbent))
    dual.inherit(before)
    if core.num_classes == 0:
        dual.pool.offer(np.zeros(0, np.int64), "elimination")
    return Part(core, dual, bound)


def cut(part: Part, ascend: Callable[[Dual], None]) -> Part:
    """What a selection of this part that is cheaper than the incumbent may contain, and its bound.

    Raises Contradiction or CapacityExceeded where there is none.
    """
    incumbent = part.dual.pool.incumbent
    while not part.settled and not incumbent.stopped():
        cost = incumbent.cost
        if cost is None:
            break
        size = part.core.unary.size + part.num_pairs
        left = part.dual.improving(cost, DIFFUSION_ROUNDS)
        core = simplified(restrict(part.core, left.alive, left.table), incumbent.stopped)
        part = inherited(core, part.dual, max(part.bound, min(left.bound, cost)))
        if part.settled:
            break
        ascend(part.dual)
        if part.core.unary.size + part.num_pairs > WORTHWHILE * size:
            break
    return part


def ascend_steps(dual: Dual, steps: int) -> None:
    """At most this many changes of prices."""
    incumbent = dual.pool.incumbent
    for _ in range(steps):
        if dual.finished or incumbent.stopped():
            break
        dual.step()
        incumbent.spend(16 * dual.reduced.num_cells)
