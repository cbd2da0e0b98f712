"""Local search for good selections: independent descents from many starts.

One descent alternates rounds of tree moves (``descent_kernels``): accepted by true cost and guided by costs with a
random share of the memory prices; and, once stalled, accepted by priced cost, which gives memory back to be spent
elsewhere.  It ends after ``patience`` rounds without gain.  The next one starts from the pool, better members more
often: where a few classes hold most of the decision, many short descents find what one long descent misses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solver.arrays import Array, Ints
from solver.selection.descent_kernels import descend
from solver.selection.incumbent import Incumbent, Pool
from solver.selection.prices import Costs, add_prices, fill_usage
from solver.selection.reduced import Reduced

TREE_SIZES = np.array([3, 5, 10, 20, 40, 80, 160], np.int64)
MOVES_PER_CALL = 25
"""Few enough that the clock is looked at every few hundredths of a second, on the largest tables too."""

CALLS_PER_ROUND = 16
MANY_CLASSES = 1000
ROUNDS_WHERE_MANY = 60
"""Where classes are many, a descent is one leg of a long way: its end is recombined with those of the other threads."""

TRUE_SHARES = (0.0, 0.3, 0.7, 1.0)
RELEASE_SHARES = (0.5, 0.8, 1.0, 1.2)


class Descents:
    """One stream of descents with its own random numbers."""

    def __init__(self, pool: Pool, costs: Costs, seed: int) -> None:
        self.pool, self.costs, self.name = pool, costs, seed
        self.reduced: Reduced = pool.reduced
        self.incumbent: Incumbent = pool.incumbent
        self.random = np.random.default_rng(seed)
        self.state = self.random.integers(1, 2**62, 1)
        self.optima: list[tuple[int, Ints]] = []
        self.many = self.reduced.num_classes >= MANY_CLASSES
        self.patience = max(12, self.reduced.num_classes // 20)
        self.longest = ROUNDS_WHERE_MANY if self.many else 10 * self.patience
        self.work_per_move = 20 * max(1, self.reduced.num_cells // max(self.reduced.num_classes, 1))

    def start(self) -> Ints | None:
        """A member of the pool, rank drawn from an exponential distribution."""
        with self.incumbent.lock:
            members = list(self.pool.members)
        if not members:
            return None
        rank = int(self.random.exponential(3.0)) if not self.many else 0
        return members[min(rank, len(members) - 1)][1].copy()

    def run(self, price: Callable[[], Array]) -> int | None:
        """One descent at the prices that are best at each moment; the cost of where it ended."""
        values = self.start()
        if values is None:
            return None
        usage = np.zeros(self.reduced.num_rows, np.int64)
        fill_usage(self.reduced.memory, values, usage)
        stalled, rounds = 0, 0
        while stalled <= self.patience and rounds < self.longest and not self.incumbent.stopped():
            gained = self._round(values, usage, price(), release=stalled >= 3 and rounds % 3 == 0)
            stalled = 0 if gained < -0.5 else stalled + 1
            rounds += 1
            self.pool.offer(values, "descent") if gained < -0.5 else None
        cost = self.pool.offer(values, "descent")
        if cost is not None:
            with self.incumbent.lock:
                self.pool.ends[self.name] = values.copy()
            self.optima = sorted([*self.optima, (cost, values.copy())], key=lambda found: found[0])[:10]
        return cost

    def _round(self, values: Ints, usage: Ints, price: Array, release: bool) -> float:
        """Some moves from where we are; the change in true cost."""
        unary = self.costs.unary
        guide = np.empty_like(unary)
        share = float(self.random.choice(RELEASE_SHARES if release else TRUE_SHARES))
        add_prices(self.reduced.graph, self.reduced.memory, unary, price * share, guide)
        accept = guide if release else unary
        gained = 0.0
        calls = CALLS_PER_ROUND // 2 if release else CALLS_PER_ROUND
        for _ in range(calls):
            gained += descend(
                self.reduced.graph,
                self.reduced.memory,
                self.costs,
                guide,
                accept,
                TREE_SIZES,
                values,
                usage,
                self.state,
                MOVES_PER_CALL,
            )
            self.incumbent.spend(MOVES_PER_CALL * self.work_per_move)
            if self.incumbent.stopped():
                break
        return gained
