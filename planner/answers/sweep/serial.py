"""The default executor: this process runs the cells one after the other."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from planner.answers.sweep.solving import solve
from planner.answers.sweep.task import Outcome, Task


class Serial:
    """One task at a time, here."""

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """The outcomes in the order of the tasks."""
        for task in tasks:
            yield solve(task)
