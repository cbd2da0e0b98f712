"""How does a back-end's work become an ``Emission``?  Its files + the launcher's + ``plan.json`` + ``PLAN.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.backends.asked import physics_of
from planner.backends.emission.describe import plan_markdown
from planner.backends.emission.emission import BackEndName, Emission, LauncherName
from planner.backends.launch.launchers import demand_pair, launch_files
from planner.backends.launch.settings import LaunchSettings
from planner.backends.launch.spec import launch_spec
from planner.plan import Plan

PLAN_JSON = "plan.json"
PLAN_MARKDOWN = "PLAN.md"


@dataclass(frozen=True, slots=True)
class BackEndFiles:
    """What one back-end's emitter wrote.

    ``script`` is the path in ``files`` that every rank runs (see ``LaunchSpec``), with ``arguments``.
    """

    files: Mapping[str, str]
    script: str
    versions: Mapping[str, str]
    version: str
    """The release of the back-end that the files are written for."""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    executables: frozenset[str] = frozenset()
    process_drives_node: bool = False
    """Whether the script runs once a node and drives all its devices (JAX), not once a device."""


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
        files={**files, **launch.files},
        launch_command=launch.command,
        environment=dict(made.environment),
        assumptions=assumptions,
        executables=made.executables | launch.executables,
        versions=dict(made.versions),
        release=made.version,
        launcher=launcher,
        launcher_files=frozenset(launch.files),
        launch_notes=launch.notes,
        script=made.script,
        arguments=made.arguments,
        process_drives_node=made.process_drives_node,
        settings=settings,
    )
    return replace(emission, files={**emission.files, PLAN_MARKDOWN: plan_markdown(emission, physics_of(plan))})


def launch_again(emission: Emission, settings: LaunchSettings) -> Emission:
    """The same emission with the launcher's files written for ``settings``.  Raises BackEndRefused, DocumentInvalid."""
    if settings == emission.settings:
        return emission
    kept = set(emission.files) - emission.launcher_files - {PLAN_JSON, PLAN_MARKDOWN}
    made = BackEndFiles(
        files={path: emission.files[path] for path in emission.files if path in kept},
        script=emission.script,
        versions=emission.versions,
        version=emission.release,
        arguments=emission.arguments,
        process_drives_node=emission.process_drives_node,
        environment=emission.environment,
        executables=emission.executables & kept,
    )
    return assemble(
        emission.backend,
        emission.plan,
        emission.launcher,
        made,
        assumptions=emission.assumptions,
        settings=settings,
    )


def plan_json(plan: Plan) -> str:
    """The whole plan, readable and loadable: ``Plan.model_validate_json`` gives it back with the same ``plan_id``."""
    return json.dumps(plan.written(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
