"""Turns a plan into an ``Emission``: its back-end's files + the launcher's + ``plan.json`` + ``PLAN.md``.

A plan is of one back-end's space, so the files of that back-end say all of it.
"""

from __future__ import annotations

import json
from dataclasses import replace

from planner.backends.asked import physics_of, software_of
from planner.backends.backend import BackEnd, Software
from planner.backends.emission.describe import plan_markdown
from planner.backends.emission.emission import PLAN_JSON, PLAN_MARKDOWN, BackEndFiles, Emission
from planner.backends.launch import LauncherName
from planner.backends.launch.launchers import launch_files
from planner.backends.launch.settings import LaunchSettings
from planner.backends.launch.spec import launch_spec
from planner.backends.registry import files_of
from planner.errors import BackEndRefused
from planner.plan.plan import Plan

NO_SETTINGS = LaunchSettings()


def emit_plan(plan: Plan, launcher: LauncherName, settings: LaunchSettings = NO_SETTINGS) -> Emission:
    """Files and launch command of a plan for its own back-end.  Raises what ``emit_for`` raises."""
    return emit_for(software_of(plan), plan, launcher, settings)


def emit_for(
    software: Software, plan: Plan, launcher: LauncherName, settings: LaunchSettings = NO_SETTINGS
) -> Emission:
    """The same for any back-end, whose rules decide whether it can run the plan.

    Raises NotFound where no files can be written for it, BackEndRefused when it cannot run the plan, the launcher does
    not go with it or cannot place the ranks, DocumentInvalid for settings that do not fit the plan.
    """
    files = files_of(software)
    demand_pair(software.backend, launcher)
    return assemble(software.name, plan, launcher, files.write(plan, software.release.version), settings)


def demand_pair(backend: BackEnd, launcher: LauncherName) -> None:
    """Raises BackEndRefused where the launcher cannot start the back-end."""
    found = backend.not_started_by.get(launcher)
    if found:
        reason, hint = found
        raise BackEndRefused(f"{backend.name} cannot be started by {launcher}: {reason}", where="--launcher", hint=hint)


def assemble(
    backend: str, plan: Plan, launcher: LauncherName, made: BackEndFiles, settings: LaunchSettings = NO_SETTINGS
) -> Emission:
    """Add launcher, ``plan.json`` and ``PLAN.md`` to what the back-end wrote.

    Raises BackEndRefused when the launcher cannot place the ranks, DocumentInvalid for settings that do not fit.
    """
    files = {**made.files, PLAN_JSON: plan_json(plan)}
    spec = launch_spec(
        plan,
        made.script,
        made.environment,
        made.arguments,
        process_drives_node=made.process_drives_node,
        files=files,
        settings=settings,
    )
    launch = launch_files(spec, launcher)
    emission = Emission(
        backend=backend,
        plan=plan,
        written=made,
        files={**files, **launch.files},
        launch_command=launch.command,
        launch_notes=launch.notes,
        launcher=launcher,
        executables=made.executables | launch.executables,
        settings=settings,
    )
    return replace(emission, files={**emission.files, PLAN_MARKDOWN: plan_markdown(emission, physics_of(plan))})


def plan_json(plan: Plan) -> str:
    """The whole plan, readable and loadable: ``Plan.model_validate_json`` gives it back with the same ``plan_id``."""
    return json.dumps(plan.written(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
