"""The plan that launch files of a back-end need: the plan itself, or the same question's best plan there.

The latter is an answer like every other: stored, in flight, searched now, or a job where that takes longer.
"""

from __future__ import annotations

from dataclasses import dataclass

from anyio import to_thread

from api.access.auth import Caller
from api.http.problem_responses import AnswerRefused
from api.jobs.board import PlanRequest
from api.planning.answers import StillSearching, make_job
from api.service import Service
from api.wire.jobs import JobRecord
from api.wire.problem_details import ProblemDetails
from planner.answers.replan.other_backend import why_no_plan_there
from planner.backends.asked import inside, software_of
from planner.backends.backend import Software
from planner.backends.registry import files_of, software
from planner.errors import BackEndRefused, NoFeasiblePlan
from planner.plan.plan import Plan
from planner.store.records import PlanText

MOST_ALTERNATIVES = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """A plan whose launch files are wanted, and the question in another back-end; None where it is the plan's own."""

    asked: PlanText
    software: Software
    there: PlanRequest | None


def wanted_files(service: Service, plan: str, backend: str | None) -> Wanted:
    """What has to be written.  ``backend``: ``NAME`` or ``NAME==RELEASE``; None = the plan's own.

    Raises NotFound for a plan or back-end that is not known, or a back-end that no files can be written for.
    """
    text = service.store.plan_text(plan)
    found = Plan.model_validate_json(text.body)
    own = software_of(found)
    wanted = own if backend is None else software(backend)
    files_of(wanted)
    # As many runners-up as the plan at hand was asked with, as far as it shows.
    top_k = min(len(found.alternatives), MOST_ALTERNATIVES)
    there = None if wanted == own else PlanRequest(problem=inside(found.problem, wanted), top_k=top_k)
    return Wanted(text, wanted, there)


def known_there(service: Service, request: PlanRequest) -> PlanText | None:
    """The proved plan of another back-end, where it is stored."""
    found = service.store.find_answer(request.problem.problem_id)
    return found if found is not None and found.is_final else None


async def planned_there(service: Service, caller: Caller, wanted: Wanted, request: PlanRequest) -> PlanText | JobRecord:
    """The plan of another back-end: stored, or searched now and stored; a job where that takes longer.

    Raises BackEndRefused where that back-end can run no plan of the question.
    """
    known = await to_thread.run_sync(known_there, service, request)
    if known is not None:
        return known
    try:
        answer = await service.answers.search(request)
    except StillSearching:
        job = await make_job(service.board(), request, None, caller.owner)
        service.metrics.count_answer("job")
        return job
    except AnswerRefused as error:
        if error.problem.slug != NoFeasiblePlan.slug:
            raise
        raise BackEndRefused(
            why_no_plan_there(wanted.software, error.problem.detail),
            where="/backend",
            hint=_hint(error.problem),
        ) from None
    return await to_thread.run_sync(service.store.plan_text, answer.plan_id)


def _hint(problem: ProblemDetails) -> str | None:
    """What helps; a request for files names its back-end in ``backend``, a question in its constraints."""
    found = next((each.hint for each in problem.errors if each.hint), None)
    return found and found.replace("constraints.backends", "backend")
