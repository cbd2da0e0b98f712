"""What the searches of the places share: the question, the tower's grids, and searches of the language model alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from planner.backends.asked import problem_hardware
from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.model.spec import Tower
from planner.plan.plan import Plan
from planner.predict.cost.hardware import Hardware
from planner.question.problem import Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.space import divisors
from planner.search.split_limits import memory_limit_bytes
from planner.search.towers.problem import checked_towers_problem
from planner.search.towers.tower_cost import TowerBill, sample_bytes, tower_bills, tower_layouts


@dataclass(slots=True)
class Asking:
    """One question about a tower, with how often the language model was searched for it."""

    problem: Problem
    tower: Tower
    hardware: Hardware
    limit_bytes: float
    sample_bytes: float
    pinned: dict[str, int]
    deadline: float | None = None
    searches: int = 0
    stopped: bool = field(default=False)
    """Whether the time ended before a search did."""

    @property
    def late(self) -> bool:
        """Whether the time is spent."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def microbatches(self) -> list[int]:
        """Numbers of micro-batches that a step may have, the fewest first."""
        wanted = self.pinned.get("num_microbatches")
        return [each for each in divisors(self.problem.workload.global_batch_size) if wanted in (None, each)]

    def bills(self, hardware: Hardware, devices: int) -> dict[int, list[TowerBill]]:
        """Every grid of the tower on so many devices by the number of micro-batches, the quickest first.

        Numbers for which no grid splits the samples are left out.  All are costed at once.
        """
        batch = self.problem.workload.global_batch_size
        layouts = [each for m in self.microbatches for each in tower_layouts(self.tower, devices, batch // m)]
        found: dict[int, list[TowerBill]] = {}
        for bill in tower_bills(self.problem.model, self.tower, self.problem.workload, hardware, layouts):
            found.setdefault(batch // bill.layout.samples, []).append(bill)
        return {number: sorted(here, key=lambda bill: bill.microbatch_s) for number, here in found.items()}

    def plan(self, problem: Problem) -> Plan | str:
        """The fastest plan of a question, or why there is none."""
        if self.late:
            self.stopped = True
            return "the time was spent"
        left_s = None if self.deadline is None else max(self.deadline - time.monotonic(), 0.01)
        self.searches += 1
        try:
            return find_plan(problem, SearchOptions(top_k=0, time_limit_s=left_s, compare=False))
        except NoFeasiblePlan as error:
            return error.what
        except BudgetSpent:
            self.stopped = True
            return "the time was spent"


def asking(problem: Problem, time_limit_s: float | None) -> Asking:
    """The question with all that is derived from it once.  Raises what ``checked_towers_problem`` does."""
    asked, tower = checked_towers_problem(problem)
    hardware = problem_hardware(asked)
    pinned = {name: value for name, value in asked.constraints.pins.items() if type(value) is int}
    return Asking(
        problem=asked,
        tower=tower,
        hardware=hardware,
        limit_bytes=memory_limit_bytes(asked, hardware),
        sample_bytes=sample_bytes(asked.model, tower, asked.workload),
        pinned=pinned,
        deadline=None if time_limit_s is None else time.monotonic() + time_limit_s,
    )
