"""A plan's question for another back-end: planned again in its own space, under its own physics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.answers.diff import PlanDiff, diff_plans
from planner.backends.asked import inside, software_of
from planner.backends.backend import Software
from planner.backends.registry import files_of, software
from planner.errors import BackEndRefused, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.find import find_plan
from planner.search.options import Progress, SearchOptions


@dataclass(frozen=True, slots=True)
class PlanThere:
    """The best plan of the same question in the back-end that was asked, and how it differs from the one at hand."""

    plan: Plan
    difference: PlanDiff | None
    """None where the plan at hand is that back-end's already."""
    searched: bool = False
    """Whether the plan is new; a stored one, and the plan at hand, are not."""

    @property
    def slower_by(self) -> float:
        """Step time over that of the plan at hand, minus one."""
        return 0.0 if self.difference is None else self.difference.step_time_s.b / self.difference.step_time_s.a - 1


def plan_there(
    plan: Plan,
    backend: str,
    options: SearchOptions | None = None,
    progress: Progress | None = None,
    known: Callable[[Problem], Plan | None] = lambda problem: None,
) -> PlanThere:
    """The plan itself where it is of ``backend`` (``NAME`` or ``NAME==RELEASE``), else the same question planned there.

    ``known``: finds a plan that no search could better; nothing is searched then.  Raises NotFound for a back-end or
    release that is not known or that no files can be written for, BackEndRefused where it can run no plan of the
    question.
    """
    wanted = software(backend)
    files_of(wanted)
    if wanted == software_of(plan):
        return PlanThere(plan, None)
    question = inside(plan.problem, wanted)
    stored = known(question)
    if stored is not None:
        return PlanThere(stored, diff_plans(plan, stored))
    try:
        found = find_plan(question, options, progress)
    except NoFeasiblePlan as error:
        raise BackEndRefused(
            why_no_plan_there(wanted, error.what),
            where=f"--backend {backend}",
            hint=error.hint,
        ) from error
    return PlanThere(found, diff_plans(plan, found), searched=True)


def why_no_plan_there(wanted: Software, what: str) -> str:
    """Words of a refused question with the back-end that it was asked of, where they do not name it themselves."""
    return what if wanted.name in what else f"{wanted.title} can run no plan of this question: {what}"
