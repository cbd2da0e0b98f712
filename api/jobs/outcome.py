"""The outcome of an attempt: what the durable program records, and what a job's record is read from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from api.wire.jobs import ResultKind
from api.wire.problem_details import ProblemDetails, problem_details
from profiles.document import Document
from profiles.errors import MeshwrightError

MOST_ATTEMPTS = 3
"""Attempts of a job whose solver dies or whose worker disappears."""


class Outcome(Document):
    """The end of an attempt.  ``again``: it failed in a way that another attempt may not."""

    status: Literal["succeeded", "failed", "cancelled"]
    attempt: int = Field(ge=1)
    result_kind: ResultKind = "none"
    plan_id: str | None = None
    fleet_id: str | None = None
    error: ProblemDetails | None = None
    again: bool = False


def failed(error: MeshwrightError, attempt: int, *, again: bool = False) -> Outcome:
    """An attempt without an answer."""
    retry = again and attempt < MOST_ATTEMPTS
    return Outcome(status="failed", attempt=attempt, error=problem_details(error), again=retry)
