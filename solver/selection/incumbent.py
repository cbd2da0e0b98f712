"""The best selection and bound so far, and the limits of a solve: shared by all its threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from solver.arrays import Ints
from solver.mixed_integer import Limits
from solver.selection.answer import TracePoint
from solver.selection.presolve.classes import NEVER
from solver.selection.prices import exact_cost_of, fill_usage, fits
from solver.selection.problem import SelectionProblem
from solver.selection.reduced import Reduced

POOL_SIZE = 12


@dataclass
class Incumbent:
    """The best selection, the best bound, and the limits of the solve.

    ``work_limit`` counts kernel steps (table entries looked at, about); with it the clock only stops what would run
    past the time limit, and decides nothing else.
    """

    problem: SelectionProblem
    started: float
    time_limit_s: float
    work_limit: int | None = None
    should_stop: Callable[[], bool] | None = None
    on_progress: Callable[[TracePoint], None] | None = None
    cost: int | None = None
    choice: Callable[[], Ints] | None = None
    bound: int | None = None
    work: int = 0
    trace: list[TracePoint] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    halted: bool = False

    def wall_s(self) -> float:
        """Seconds since the solve began."""
        return time.monotonic() - self.started

    def left_s(self) -> float:
        """Seconds until the limit."""
        return self.time_limit_s - self.wall_s()

    def spend(self, work: int) -> None:
        """Count kernel steps."""
        with self.lock:
            self.work += work

    def share_spent(self) -> float:
        """How much of the limit is used: of the work where that is limited, else of the time."""
        if self.work_limit is not None:
            return self.work / max(self.work_limit, 1)
        return self.wall_s() / max(self.time_limit_s, 1e-9)

    def closed(self) -> bool:
        """Whether the bound has reached the cost."""
        return self.cost is not None and self.bound is not None and self.bound >= self.cost

    def stopped(self) -> bool:
        """Whether every thread should come to its end."""
        if not self.halted and self.should_stop is not None and self.should_stop():
            self.halted = True
        return self.halted or self.closed() or self.share_spent() >= 1.0 or self.left_s() <= 0

    def limits(self, stopped: Callable[[], bool], share_s: float, share_nodes: int) -> Limits:
        """Those of one program: its share in seconds, or in nodes where the work is limited."""
        if self.work_limit is not None:
            return Limits(stopped, self.left_s(), max_nodes=share_nodes)
        return Limits(stopped, self.left_s(), share_s)

    def offer(self, cost: int, choice: Callable[[], Ints], by: str) -> bool:
        """Take a selection if it is cheaper than the best; ``choice`` writes it out when it is asked for."""
        with self.lock:
            if self.cost is not None and cost >= self.cost:
                return False
            self.cost, self.choice = cost, choice
            if self.bound is not None and self.bound > cost:
                self.bound = cost
            self._note(by)
            return True

    def raise_bound(self, bound: int, by: str) -> None:
        """Take a bound if it is higher; a bound above the cost says that the cost is the optimum."""
        with self.lock:
            if self.cost is not None:
                bound = min(bound, self.cost)
            if self.bound is None or bound > self.bound:
                self.bound = bound
                self._note(by)

    def _note(self, by: str) -> None:
        point = TracePoint(self.wall_s(), self.cost, self.bound, by)
        self.trace.append(point)
        if self.on_progress is not None:
            self.on_progress(point)


class Pool:
    """Good selections of one reduced problem, each a start for a descent; ``ends``: where each stream ended last."""

    def __init__(self, reduced: Reduced, incumbent: Incumbent, size: int = POOL_SIZE) -> None:
        self.reduced, self.incumbent, self.size = reduced, incumbent, size
        self.members: list[tuple[int, Ints]] = []
        self.ends: dict[int, Ints] = {}

    def relative_cost(self) -> float:
        """The incumbent's cost without the constant of this reduced problem; infinite where there is none."""
        cost = self.incumbent.cost
        return float("inf") if cost is None else float(cost - self.reduced.constant)

    def offer(self, values: Ints, by: str) -> int | None:
        """Keep a selection that fits; its cost with the constant, None where it is forbidden or does not fit."""
        reduced = self.reduced
        cost = int(exact_cost_of(reduced.graph, reduced.unary, reduced.table, values))
        if cost >= NEVER:
            return None
        usage = np.zeros(reduced.num_rows, np.int64)
        fill_usage(reduced.memory, values, usage)
        if not fits(usage, reduced.memory.slack):
            return None
        cost += reduced.constant
        with self.incumbent.lock:
            if all(cost != other for other, _ in self.members):
                self.members.append((cost, values.copy()))
                self.members.sort(key=lambda member: member[0])
                del self.members[self.size :]
        if self.incumbent.cost is None or cost < self.incumbent.cost:
            kept = values.copy()
            self.incumbent.offer(cost, lambda: reduced.choice(kept), by)
        return cost
