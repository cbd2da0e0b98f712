"""Planning by a service: it searches and keeps; the plan is written and printed here, as if made here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.cli.backend_names import BEST
from planner.cli.emitting import emission_data, tell_difference
from planner.cli.output import talk
from planner.cli.planning import Afterwards, Wanted, announce, print_answer, write_documents
from planner.errors import NoFeasiblePlan

if TYPE_CHECKING:
    from planner.operations.service import PlanService
    from planner.plan.plan import Plan
    from planner.search.options import SearchOptions


def answer_remotely(service: PlanService, question: Mapping[str, Any], search: SearchOptions, wanted: Wanted) -> None:
    """Ask, write and print.  Raises what the service says: NoFeasiblePlan, BudgetSpent, ..."""
    from planner.cli.progress import search_progress

    def started(job: str) -> None:
        watch = f"meshwright jobs watch {job} --server {service.address}"
        talk(f"a long search: job {job} goes on without this command ({watch})", quiet=wanted.quiet)

    options = {"top_k": search.top_k, "time_limit_s": search.time_limit_s, "seed": search.seed}
    try:
        with search_progress(quiet=wanted.quiet) as progress:
            plan = service.plan({**question, **options}, started, progress)
    except NoFeasiblePlan as error:
        error.where = error.where or _place(question)
        raise
    announce(plan.problem, wanted.quiet)
    talk(f"planned by {service.address}, gap {plan.gap:.2%}", quiet=wanted.quiet)
    done = Afterwards()
    next_command = f"meshwright explain {plan.plan_id[:12]} --server {service.address}"
    done.notes.append(f"stored at {service.address}; next: {next_command}")
    write_documents(plan, wanted, done)
    for backend in wanted.emitted:
        done.attempt(lambda name=backend: done.emissions.append(_emit(service, plan, name, wanted)))  # type: ignore[misc]
    print_answer(plan, None, wanted, done)
    if done.failure is not None:
        raise done.failure


def _emit(service: PlanService, plan: Plan, backend: str, wanted: Wanted) -> dict[str, Any]:
    directory = wanted.directory(backend)
    name = None if backend == BEST else backend
    data = emission_data(service.write_emission(plan.plan_id, name, wanted.launcher, directory), directory)
    tell_difference(data, quiet=wanted.quiet)
    return data


def _place(question: Mapping[str, Any]) -> str:
    """``llama-3.1-70b on 64 x dgx-h100``, as far as the question says it."""
    names = [
        part if isinstance(part, str) else part.get("name", "") for part in (question["model"], question["cluster"])
    ]
    devices = question["devices"]
    return f"{names[0]} on {f'{devices:,} x ' if devices else ''}{names[1]}"
