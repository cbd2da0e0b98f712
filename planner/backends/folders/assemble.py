"""How does a back-end's work become an ``Emission``?  Its files + the launcher's + ``plan.json`` + ``PLAN.md``."""

from __future__ import annotations

import json
from dataclasses import replace

from planner.backends.asked import physics_of
from planner.backends.emission.describe import plan_markdown
from planner.backends.emission.emission import BackEndFiles, BackEndName, Emission, LauncherName
from planner.backends.launch.launchers import demand_pair, launch_files
from planner.backends.launch.settings import LaunchSettings
from planner.backends.launch.spec import launch_spec
from planner.plan import Plan

PLAN_JSON = "plan.json"
PLAN_MARKDOWN = "PLAN.md"


def assemble(
    backend: BackEndName,
    plan: Plan,
    launcher: LauncherName,
    made: BackEndFiles,
    *,
    assumptions: tuple[str, ...] = (),
    settings: LaunchSettings = LaunchSettings(),  # noqa: B008  # frozen
) -> Emission:
    """Add launcher, ``plan.json`` and ``PLAN.md`` to what the back-end wrote.

    Raises BackEndRefused when the launcher cannot place the ranks, or does not go with the back-end.
    """
    demand_pair(backend, launcher)
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
        assumptions=assumptions,
        settings=settings,
    )
    return replace(emission, files={**emission.files, PLAN_MARKDOWN: plan_markdown(emission, physics_of(plan))})


def launch_again(emission: Emission, settings: LaunchSettings) -> Emission:
    """The same emission with the launcher's files written for ``settings``.  Raises BackEndRefused, DocumentInvalid."""
    if settings == emission.settings:
        return emission
    return assemble(
        emission.backend,
        emission.plan,
        emission.launcher,
        emission.written,
        assumptions=emission.assumptions,
        settings=settings,
    )


def plan_json(plan: Plan) -> str:
    """The whole plan, readable and loadable: ``Plan.model_validate_json`` gives it back with the same ``plan_id``."""
    return json.dumps(plan.written(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
