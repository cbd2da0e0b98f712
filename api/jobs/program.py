"""The durable program that DBOS runs for a job: attempts, one recorded step each, until one has an outcome.

    outcome = attempt(request, crashes=0)          recorded; replayed, not run again, after the worker died
    while outcome.again: outcome = attempt(request, crashes += 1)

A worker that dies inside an attempt leaves nothing recorded; DBOS dispatches the program again, replays the recorded
attempts and starts the open one anew.  Both kinds of failure spend the same budget:

    number of an attempt = dispatches of the program + recorded attempts whose solver died,  at most 3

and a program that was dispatched three times without an end is set aside by DBOS (max_recovery_attempts).
The outcome is the program's return value.  DBOS writes it only for the execution that owns the job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbos import DBOS
from dbos._dbos import _get_dbos_instance

from api.jobs.outcome import MOST_ATTEMPTS, Outcome
from api.jobs.records import STREAM
from api.jobs.system_database import PROGRAM

RunAttempt = Callable[[str, str, int], Outcome]
"""(job id, request, recorded crashes) -> outcome."""


def register_program(run_attempt: RunAttempt) -> None:
    """Make the program known to DBOS in this process, before it is launched."""

    @DBOS.step(name="attempt")
    def attempt(request: str, crashes: int) -> dict[str, Any]:
        job = DBOS.workflow_id
        if job is None:
            raise RuntimeError("an attempt is a step of a program")
        return run_attempt(job, request, crashes).model_dump(mode="json")

    @DBOS.workflow(name=PROGRAM, max_recovery_attempts=MOST_ATTEMPTS - 1)
    def plan(request: str) -> dict[str, Any]:
        crashes = 0
        while True:
            outcome = attempt(request, crashes)
            if not outcome["again"]:
                return outcome
            crashes += 1


def active_jobs() -> set[str]:
    """Jobs whose program runs in this process, or waits here to write its outcome."""
    return set(_get_dbos_instance()._active_workflows_set.activeList())


def write_event(value: dict[str, Any]) -> None:
    """Append to the job's events, from inside an attempt; refused when the job belongs to another execution."""
    DBOS.write_stream(STREAM, value)
