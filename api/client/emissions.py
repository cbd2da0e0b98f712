"""Requests for launch files: those of a plan, or of the best plan in another back-end."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any

from api.client.errors import ProblemReported, ServiceError
from api.client.jobs import Jobs, Progress, Started
from api.client.stored_plans import path_of, write_view
from api.client.transport import read_answer
from api.wire.jobs import JobRecord
from api.wire.views import EmissionView
from planner.backends.launch.settings import LaunchSettings


class Emissions(Jobs):
    """The part of a client that asks ``/v1/plans/{plan}/emissions``."""

    def emission(
        self,
        plan: str,
        backend: str | None = None,
        *,
        launcher: str = "torchrun",
        settings: LaunchSettings | None = None,
        started: Started | None = None,
        progress: Progress | None = None,
        wait_s: float | None = None,
    ) -> EmissionView:
        """Launch files with their manifest; ``settings``: what only you know of where the job runs.

        ``backend``: ``NAME`` or ``NAME==RELEASE``, None = the plan's own.  In another one the same question is planned
        (which needs a key that may plan) unless that is done already; a long search is waited for, ``wait_s`` at most.
        Raises ProblemReported (backend-refused, ...), JobUnfinished.
        """
        asked = {"launcher": launcher, **({} if settings is None else settings.to_dict())}
        if backend is not None:
            asked["backend"] = backend
        try:
            return self._transport.ask(EmissionView, "GET", f"{path_of(plan)}/emissions", params=asked)
        except ProblemReported as error:
            if not _unplanned(error):
                raise
        return self._planned_there(plan, asked, started, progress, wait_s)

    def emission_zip(
        self,
        plan: str,
        backend: str | None = None,
        *,
        launcher: str = "torchrun",
        settings: LaunchSettings | None = None,
        wait_s: float | None = None,
    ) -> bytes:
        """The same as one archive; equal plans give equal bytes."""
        asked = {"launcher": launcher, **({} if settings is None else settings.to_dict())}
        if backend is not None:
            asked["backend"] = backend
        path, headers = f"{path_of(plan)}/emissions", {"Accept": "application/zip"}
        try:
            return self._transport.send("GET", path, params=asked, headers=headers).content
        except ProblemReported as error:
            if not _unplanned(error):
                raise
        self._planned_there(plan, asked, None, None, wait_s)
        return self._transport.send("GET", path, params=asked, headers=headers).content

    def write_emission(
        self,
        plan: str,
        folder: Path,
        backend: str | None = None,
        *,
        launcher: str = "torchrun",
        settings: LaunchSettings | None = None,
        wait_s: float | None = None,
    ) -> EmissionView:
        """The launch files in ``folder``: whole or not at all, and only an untouched emission is replaced.

        Raises Conflict and DocumentInvalid as ``meshwright emit`` does, BackEndRefused for a name that leads out of the
        folder, ServiceAnswerInvalid for a file that is not what the manifest says.
        """
        found = self.emission(plan, backend, launcher=launcher, settings=settings, wait_s=wait_s)
        write_view(found, folder)
        return found

    def _planned_there(
        self,
        plan: str,
        asked: dict[str, Any],
        started: Started | None,
        progress: Progress | None,
        wait_s: float | None,
    ) -> EmissionView:
        path = f"{path_of(plan)}/emissions"
        answer = self._transport.send("POST", path, body=asked)
        if answer.status_code == HTTPStatus.ACCEPTED:
            job = read_answer(JobRecord, answer.content)
            if started is not None:
                started(job.id)
            self.wait_for_job(job.id, progress=progress, wait_s=wait_s)
            answer = self._transport.send("POST", path, body=asked)
        if answer.status_code == HTTPStatus.ACCEPTED:
            raise ServiceError(
                "the plan in that back-end is not proved, and is searched again",
                hint="wait for its job, or emit the plan that it has by that plan's own id",
            )
        return read_answer(EmissionView, answer.content)


def _unplanned(error: ProblemReported) -> bool:
    """Whether there is no plan of the question in that back-end yet."""
    return error.status == HTTPStatus.NOT_FOUND and error.where == "backend"
