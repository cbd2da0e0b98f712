"""What can go wrong between a client and the service, hung on the tree of ``profiles.errors``.

MeshwrightError
└── ServiceError                    exit 2   the service gave no answer that can be used
    ├── ServiceUnreachable          exit 2   no connection, no answer in time, or somebody else answers there
    ├── ServiceAnswerInvalid        exit 2   an answer that this release cannot read
    ├── ProblemReported             exit 2   the service says what is wrong (RFC 9457)
    ├── JobUnfinished               exit 6   the job still runs, and the caller waits no longer
    ├── SweepUnfinished             exit 6   the sweep still runs, and the caller waits no longer
    └── JobCancelled                exit 6   the job was cancelled before it had any plan
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus

from api.wire.problem_details import Finding, ProblemDetails
from planner.errors import (
    BackEndRefused,
    BudgetSpent,
    Conflict,
    DocumentInvalid,
    MeshwrightError,
    NoFeasiblePlan,
    NotFound,
    ProfileMissing,
)
from planner.store.errors import AmbiguousPlan, PlanUnreadable

EXIT_CODES = {
    each.slug: each.exit_code
    for each in (
        *(DocumentInvalid, NotFound, Conflict, ProfileMissing, NoFeasiblePlan, BudgetSpent, BackEndRefused),
        *(AmbiguousPlan, PlanUnreadable),
    )
}
"""What ends a command in the same way with a service and without."""


class ServiceError(MeshwrightError):
    """The service gave no answer that can be used."""

    slug = "service-error"
    exit_code = 2
    http_status = 503


class ServiceUnreachable(ServiceError):
    """No connection, no answer in time, or somebody else answers at that address."""

    slug = "service-unreachable"


class ServiceAnswerInvalid(ServiceError):
    """The service answered something that this release cannot read."""

    slug = "service-answer-invalid"


class ProblemReported(ServiceError):
    """The service says what is wrong: ``problem`` has it all, the properties what is asked first."""

    slug = "problem-reported"

    def __init__(self, problem: ProblemDetails, retry_after_s: float | None = None) -> None:
        first = problem.errors[0] if len(problem.errors) == 1 else None
        super().__init__(
            problem.detail if len(problem.errors) < 2 else "\n".join(_lines(problem.errors)),
            where=(first.pointer or None) if first else None,
            hint=first.hint if first else None,
        )
        self.problem = problem
        self.retry_after_s = retry_after_s
        # A program that branches on the slug or on the exit code sees what it would see without a service.
        self.slug = problem.slug  # type: ignore[misc]  # of this error, not of the class
        self.exit_code = _exit_code(problem)  # type: ignore[misc]

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def type(self) -> str:
        """The stable address of the kind of error; its last part is ``problem.slug``."""
        return self.problem.type

    @property
    def title(self) -> str:
        """The kind of error in words."""
        return self.problem.title

    @property
    def detail(self) -> str:
        """This error in words."""
        return self.problem.detail

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Every fault, each with a JSON pointer into what was sent and a hint."""
        return self.problem.errors


def _lines(errors: Sequence[Finding]) -> Iterator[str]:
    yield f"{len(errors)} problems"
    for each in errors:
        yield f"  #{each.pointer or '/'}: {each.detail}{f' ({each.hint})' if each.hint else ''}"


def _exit_code(problem: ProblemDetails) -> int:
    """The exit code of the same error without a service; 1 for a mistake of the service itself."""
    if problem.slug in EXIT_CODES:
        return EXIT_CODES[problem.slug]
    return 1 if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR else ServiceError.exit_code


class JobUnfinished(ServiceError):
    """The job still runs, and the caller waits no longer; ``job_id`` finds it again."""

    slug = "job-unfinished"
    exit_code = 6

    def __init__(self, job_id: str, waited_s: float) -> None:
        super().__init__(
            f"job {job_id} is still running after {waited_s:g} s",
            where=job_id,
            hint="wait for it again, watch its events, or cancel it: its best plan so far is kept",
        )
        self.job_id = job_id


class JobCancelled(ServiceError):
    """The job was cancelled before it had any plan."""

    slug = "job-cancelled"
    exit_code = 6

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"job {job_id} was cancelled before it had a plan", where=job_id, hint="ask for the plan again"
        )
        self.job_id = job_id


class SweepUnfinished(ServiceError):
    """The sweep still runs, and the caller waits no longer; ``sweep_id`` finds it again."""

    slug = "sweep-unfinished"
    exit_code = 6

    def __init__(self, sweep_id: str, waited_s: float) -> None:
        super().__init__(
            f"sweep {sweep_id[:12]} is still running after {waited_s:g} s",
            where=sweep_id,
            hint="wait for it again, or cancel it: its answers are kept",
        )
        self.sweep_id = sweep_id
