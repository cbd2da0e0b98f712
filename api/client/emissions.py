"""Requests for launch files: those of a plan, or of the best plan in another back-end."""

from __future__ import annotations

from pathlib import Path

from api.client.errors import ProblemReported
from api.client.jobs import Jobs, Progress, Started, is_unplanned
from planner.backends.launch.settings import LaunchSettings
from planner.operations.emit import EMIT, EmissionView, EmitRequest
from profiles.validation import read_document

HERE = LaunchSettings()


class Emissions(Jobs):
    """The part of a client that asks ``/v1/plans/{plan}/emissions``."""

    def emission(
        self,
        plan: str,
        backend: str | None = None,
        *,
        launcher: str = "torchrun",
        settings: LaunchSettings = HERE,
        started: Started | None = None,
        progress: Progress | None = None,
        wait_s: float | None = None,
    ) -> EmissionView:
        """Launch files with their manifest; ``settings``: what only you know of where the job runs.

        ``backend``: ``NAME`` or ``NAME==RELEASE``, None = the plan's own.  In another one the same question is planned
        (which needs a key that may plan) unless that is done already; a long search is waited for, ``wait_s`` at most.
        Raises ProblemReported (backend-refused, ...), JobUnfinished, ServiceAnswerInvalid for a file that is not what
        the manifest says, BackEndRefused for a name that leads out of a folder.
        """
        asked = _asked(plan, backend, launcher, settings)
        return self.call(EMIT, asked, started=started, progress=progress, wait_s=wait_s)

    def emission_zip(
        self,
        plan: str,
        backend: str | None = None,
        *,
        launcher: str = "torchrun",
        settings: LaunchSettings = HERE,
        wait_s: float | None = None,
    ) -> bytes:
        """The same as one archive; equal plans give equal bytes."""
        asked, headers = _asked(plan, backend, launcher, settings), {"Accept": "application/zip"}
        try:
            return self._sent(EMIT, "GET", asked, headers=headers).content
        except ProblemReported as error:
            if not is_unplanned(error):
                raise
        self.call(EMIT, asked, wait_s=wait_s)
        return self._sent(EMIT, "GET", asked, headers=headers).content

    def write_emission(
        self,
        plan: str,
        folder: Path,
        backend: str | None = None,
        *,
        launcher: str = "torchrun",
        settings: LaunchSettings = HERE,
        wait_s: float | None = None,
    ) -> EmissionView:
        """The launch files in ``folder``: whole or not at all, and only an untouched emission is replaced.

        Raises Conflict and DocumentInvalid as ``meshwright emit`` does, and what ``emission`` raises.
        """
        found = self.emission(plan, backend, launcher=launcher, settings=settings, wait_s=wait_s)
        found.write(folder)
        return found


def _asked(plan: str, backend: str | None, launcher: str, settings: LaunchSettings) -> EmitRequest:
    """The request.  Raises DocumentInvalid for a launcher that is not known."""
    said = {"plan": plan, "backend": backend, "launcher": launcher, "settings": settings.to_dict()}
    return read_document(EmitRequest, said, "emission")
