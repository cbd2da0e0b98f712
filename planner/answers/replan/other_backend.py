"""A plan's question for another back-end: planned again in its own space, under its own physics."""

from __future__ import annotations

from dataclasses import dataclass

from planner.answers.diff import PlanDiff, diff_plans
from planner.backends.asked import inside, software_of
from planner.backends.backend import Software
from planner.backends.registry import files_of, software
from planner.errors import BackEndRefused, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.search.find import find_plan
from planner.search.options import Progress, SearchOptions


@dataclass(frozen=True, slots=True)
class PlanThere:
    """The best plan of the same question in the back-end that was asked, and how it differs from the one at hand."""

    plan: Plan
    difference: PlanDiff | None
    """None where the plan at hand is that back-end's already."""

    @property
    def slower_by(self) -> float:
        """Step time over that of the plan at hand, minus one."""
        return 0.0 if self.difference is None else self.difference.step_time_s.b / self.difference.step_time_s.a - 1


def plan_there(
    plan: Plan, backend: str, options: SearchOptions | None = None, progress: Progress | None = None
) -> PlanThere:
    """The plan itself where it is of ``backend`` (``NAME`` or ``NAME==RELEASE``), else the same question planned there.

    Raises NotFound for a back-end or release that is not known or that no files can be written for, BackEndRefused
    where it can run no plan of the question.
    """
    wanted = software(backend)
    files_of(wanted)
    if wanted == software_of(plan):
        return PlanThere(plan, None)
    try:
        found = find_plan(inside(plan.problem, wanted), options, progress)
    except NoFeasiblePlan as error:
        raise BackEndRefused(
            why_no_plan_there(wanted, error.what),
            where=f"--backend {backend}",
            hint=error.hint,
        ) from error
    return PlanThere(found, diff_plans(plan, found))


def why_no_plan_there(wanted: Software, what: str) -> str:
    """Words of a refused question with the back-end that it was asked of, where they do not name it themselves."""
    return what if wanted.name in what else f"{wanted.title} can run no plan of this question: {what}"
