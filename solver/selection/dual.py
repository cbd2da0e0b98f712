"""The prices of memory for the best bound: subgradient ascent on the rows' prices around message passing.

    L(p) = min over permitted selections of  cost + sum_r p_r (usage_r - slack_r),    p >= 0,

is bounded from below by ``messages.sweep`` on the priced tables, which also decodes a selection x.  Its usage gives the
direction g_r = usage_r(x) - slack_r, smoothed over time (heavy ball, ``MEMORY_OF_DIRECTION``); the step is Polyak's,
alpha (target - L) / |g|^2, with the incumbent or a rising estimate as target.  After ``PATIENCE`` steps without a
better bound alpha shrinks and the ascent returns to its best prices.  Decoded selections that fit become incumbents.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Array
from solver.selection.exact_bound import (
    Improving,
    ProvenBound,
    ReducedCosts,
    improving,
    proven_bound,
    reduced_costs,
)
from solver.selection.incumbent import Pool
from solver.selection.inheritance import carried_messages, carried_prices
from solver.selection.messages import diffuse, message_start, shares_from_messages, sweep
from solver.selection.prices import NEVER_REAL, Costs, add_prices, fill_usage, fits, real_costs
from solver.selection.reduced import Reduced

MEMORY_OF_DIRECTION = 0.7
PATIENCE = 20
PATIENCE_INHERITED = 8
ROUNDS_PER_STEP = 4
FIRST_ROUNDS = 20
DIFFUSION_STEP = 2
"""Rounds of evening out between two looks at the clock: there and back."""
SMALLEST_ALPHA = 1e-3


class Dual:
    """Prices, messages and the best of both so far."""

    def __init__(self, reduced: Reduced, pool: Pool) -> None:
        self.reduced, self.pool = reduced, pool
        self.costs: Costs = real_costs(reduced)
        self.start = message_start(reduced.graph)
        self.messages = np.zeros(int(self.start[-1]))
        self.values = np.zeros(reduced.num_classes, np.int64)
        self.usage = np.zeros(reduced.num_rows, np.int64)
        self.slack = reduced.memory.slack.astype(np.float64)
        self.unit = max(float(self.slack.max(initial=1.0)), 1.0)
        self.price = np.zeros(reduced.num_rows)
        self.priced = self.costs.unary.copy()
        self.direction: np.ndarray[tuple[int], np.dtype[np.float64]] | None = None
        self.alpha, self.reach, self.now, self.stalled, self.steps = 1.0, 0.1, -math.inf, 0, 0
        self.first_rounds, self.patience = FIRST_ROUNDS, PATIENCE
        self.finished = reduced.num_classes == 0
        self.best, self.best_price, self.best_messages = -math.inf, self.price.copy(), self.messages.copy()

    def inherit(self, other: Dual) -> None:
        """Begin with the best prices and messages of the dual of a problem that this one was made from."""
        self.price[:] = carried_prices(other.reduced, other.best_price, self.reduced)
        self.first_rounds = ROUNDS_PER_STEP
        self.messages[:] = carried_messages(other.reduced, other.best_messages, self.reduced)
        self.alpha, self.patience = min(1.0, 4 * other.alpha), PATIENCE_INHERITED

    def without(self, alive: NDArray[np.bool_]) -> Dual:
        """A dual of the same tables that begins where this one is best, and in which only values alive are cheap."""
        other = Dual(self.reduced, self.pool)
        other.costs = Costs(np.where(alive, self.costs.unary, NEVER_REAL), self.costs.table)
        other.price[:], other.messages[:] = self.best_price, self.best_messages
        other.first_rounds, other.patience = ROUNDS_PER_STEP, PATIENCE_INHERITED
        other.alpha = min(1.0, 4 * self.alpha)
        return other

    def evaluate(self, rounds: int) -> float:
        """Sweep at the present prices and look at the decoded selection; the bound without the constant."""
        graph, memory = self.reduced.graph, self.reduced.memory
        add_prices(graph, memory, self.costs.unary, self.price, self.priced)
        bound = sweep(graph, self.priced, self.costs.table, self.start, self.messages, rounds, self.values)
        fill_usage(memory, self.values, self.usage)
        if fits(self.usage, memory.slack):
            self.pool.offer(self.values, "relaxation")
        self.steps += 1
        return float(bound - self.price @ self.slack)

    def step(self) -> None:
        """One change of prices; sets ``finished`` when nothing more is to be gained."""
        if self.steps == 0:
            for _ in range(0, self.first_rounds, ROUNDS_PER_STEP):
                self.keep(self.evaluate(ROUNDS_PER_STEP))
                if self.pool.incumbent.stopped():
                    break
            self.now = self.best
            if self.reduced.num_rows == 0:
                self.finished = self.stalled > self.patience
            return
        if self.reduced.num_rows == 0:
            self._settle()
            return
        cost = self.pool.relative_cost()
        if cost - self.best <= max(0.5, 1e-9 * abs(self.best)):
            self.finished = True
            return
        target = min(cost, self.best + self.reach * abs(self.best) + 1)
        gradient = (self.usage - self.slack) / self.unit
        old = gradient if self.direction is None else self.direction
        self.direction = MEMORY_OF_DIRECTION * old + (1 - MEMORY_OF_DIRECTION) * gradient
        move = np.where((self.price > 0) | (self.direction > 0), self.direction, 0.0)
        norm = float(move @ move)
        if norm < 1e-20:
            self._settle()
            return
        size = self.alpha * max(target - self.now, 1e-4 * abs(self.now)) / norm
        self.price = np.maximum(0.0, self.price + size * move / self.unit)
        self.now = self.evaluate(ROUNDS_PER_STEP)
        if self.now > self.best + 1e-6 * abs(self.best):
            self.keep(self.now)
            self.stalled = 0
        else:
            self.stalled += 1
            if self.stalled >= self.patience:
                self._return_to_best()

    def _settle(self) -> None:
        """No price is to be changed: messages alone, until they gain no more."""
        bound = self.evaluate(FIRST_ROUNDS)
        overflowing = bool((self.usage > self.reduced.memory.slack).any())
        self.finished = bound <= self.best + 1e-6 * abs(self.best) and not overflowing
        self.now = bound
        self.keep(bound)

    def _return_to_best(self) -> None:
        self.alpha *= 0.7
        self.reach = max(0.02, self.reach * 0.8)
        self.stalled, self.direction = 0, None
        self.price[:], self.messages[:] = self.best_price, self.best_messages
        if self.alpha < SMALLEST_ALPHA:
            self.finished = True
            return
        self.now = self.evaluate(ROUNDS_PER_STEP)

    def keep(self, bound: float) -> None:
        """Remember the present prices if their bound is the best."""
        if bound > self.best:
            self.best = bound
            self.best_price, self.best_messages = self.price.copy(), self.messages.copy()

    def prove(self, rounds: int = 0) -> ProvenBound:
        """The exact bound at the best prices, after ``rounds`` of evening out min-marginals over all edges."""
        return proven_bound(self.reduced, self.best_price, self._shares(rounds), self.start)

    def improving(self, cost: int, rounds: int) -> Improving:
        """What a selection cheaper than ``cost`` may contain, as far as these prices say."""
        return improving(self.reduced, self.best_price, self._shares(rounds), self.start, cost)

    def reduced_costs(self, rounds: int = 0) -> ReducedCosts:
        """What every part of a selection costs above the exact bound at the best prices."""
        return reduced_costs(self.reduced, self.best_price, self._shares(rounds), self.start)

    def _shares(self, rounds: int) -> Array:
        graph = self.reduced.graph
        priced = np.zeros_like(self.priced)
        add_prices(graph, self.reduced.memory, self.costs.unary, self.best_price, priced)
        shares = np.zeros_like(self.messages)
        shares_from_messages(graph, priced, self.start, self.best_messages, shares)
        for _ in range(0, rounds, DIFFUSION_STEP):
            if self.pool.incumbent.stopped():
                break
            diffuse(graph, priced, self.costs.table, self.start, shares, DIFFUSION_STEP)
        return shares
