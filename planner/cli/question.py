"""The question of the flags, as the service that is asked takes it: complete on this machine, else in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.cli.problem_inputs import ProblemFlags, build_problem
from planner.cli.remote_question import remote_question

if TYPE_CHECKING:
    from planner.operations.service import Service
    from planner.question.problem import Problem


def question_of(service: Service, flags: ProblemFlags) -> Problem | dict[str, Any]:
    """Files are read here, names are looked up where the work is done.  Raises DocumentInvalid, NotFound, Conflict."""
    return service.question(lambda: build_problem(flags), lambda: remote_question(service, flags))
