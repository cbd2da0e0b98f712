"""Launch files of a plan, or of the best plan of its question in another back-end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pydantic import Field

from planner.answers.diff import PlanDiff
from planner.answers.replan.other_backend import PlanThere, plan_there
from planner.backends.emission.write import manifest, write_folder
from planner.backends.launch import LauncherName
from planner.backends.launch.settings import LaunchSettings
from planner.operations.operation import Operation, Session
from planner.operations.plan_reference import PlanRequest, is_plan_file
from profiles.document import Document


class EmitRequest(PlanRequest):
    """A plan, and what its files are for."""

    backend: str | None = Field(default=None, description="NAME or NAME==RELEASE; None = the plan's own")
    launcher: LauncherName = "torchrun"
    settings: dict[str, Any] = Field(
        default_factory=dict, description="the place where the job runs, as ``LaunchSettings.to_dict`` says it"
    )


class EmissionView(Document):
    """Launch files of a plan, or of the same question's best plan in another back-end."""

    plan_id: str = Field(description="the plan that the files are of")
    backend: str
    release: str
    asked_plan_id: str = Field(description="the plan that was asked about")
    slower_by: float = Field(description="step time over that of the plan that was asked about, minus one")
    difference: PlanDiff | None = Field(description="from the plan that was asked about; null = it is that")
    step_time_s: float
    manifest: dict[str, Any]
    launch_notes: tuple[str, ...]
    files: dict[str, str] = Field(description="relative path -> text")

    def write(self, directory: Path) -> Path:
        """Write the folder, whole or not at all; only an untouched emission is replaced.

        Raises Conflict for a folder that holds something else, DocumentInvalid where the file system refuses.
        """
        entries: dict[str, dict[str, Any]] = self.manifest["files"]
        executables = frozenset(path for path, entry in entries.items() if entry.get("executable"))
        return write_folder(self.files, executables, self.manifest, directory)


def emission_view(there: PlanThere, launcher: LauncherName, settings: LaunchSettings) -> EmissionView:
    """The files of a plan.  Raises NotFound, BackEndRefused, DocumentInvalid as ``emit_plan`` does."""
    # A computing process that only estimates never loads an emitter.
    from planner.backends.folders.emit import emit_plan

    made = emit_plan(there.plan, launcher, settings)
    return EmissionView(
        plan_id=made.plan.plan_id,
        backend=made.backend,
        release=made.written.version,
        asked_plan_id=made.plan.plan_id if there.difference is None else there.difference.a,
        slower_by=there.slower_by,
        difference=there.difference,
        step_time_s=made.plan.step_time_s,
        manifest=manifest(made),
        launch_notes=made.launch_notes,
        files=dict(made.files),
    )


def _work(session: Session, asked: EmitRequest) -> EmissionView:
    there, start_s = PlanThere(session.plan(asked.plan), None), time.perf_counter()
    if asked.backend is not None:
        there = plan_there(there.plan, asked.backend, session.search, session.progress, session.known)
    # What files say that they are of can be looked up: a new plan, and one that only a file holds.
    if there.searched:
        session.keep(there.plan, time.perf_counter() - start_s)
    elif there.difference is None and is_plan_file(asked.plan):
        session.keep(there.plan, None)
    return emission_view(there, asked.launcher, LaunchSettings.from_dict(asked.settings))


EMIT = Operation(
    name="create_emission",
    summary="Launch files of the plan, or of the best plan in another back-end, which is planned if it has to be",
    description="The new plan is stored; `plan_id` names it, `difference` says how it differs from the one asked"
    " about.",
    request=EmitRequest,
    answer=EmissionView,
    work=_work,
    path="/v1/plans/{plan}/emissions",
    method="POST",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    runs="job",
    read_first=True,
    spread=("settings",),
    example={"backend": "torchtitan", "launcher": "slurm"},
    changes=True,
    searches=lambda asked: asked.backend is not None,
    # What is said about the place where the job runs, and files of this machine, are put together here.
    reads_files=lambda asked: bool(asked.settings) or is_plan_file(asked.plan),
    command="emit",
)
