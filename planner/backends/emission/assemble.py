"""How does a target's work become an ``Emission``?  Its files + the launcher's + ``plan.json`` + ``PLAN.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.backends.emission.describe import plan_markdown
from planner.backends.emission.emission import Emission, LauncherName, Projection, TargetName
from planner.backends.launch.pairs import demand_pair
from planner.backends.launch.settings import LaunchSettings
from planner.backends.launch.spec import launch_files, launch_spec
from planner.plan import Plan

PLAN_JSON = "plan.json"
PLAN_MARKDOWN = "PLAN.md"


@dataclass(frozen=True, slots=True)
class TargetFiles:
    """What one back-end's emitter wrote.

    ``script`` is the path in ``files`` that every rank runs (see ``LaunchSpec``), with ``arguments``.
    """

    files: Mapping[str, str]
    script: str
    versions: Mapping[str, str]
    version: str
    """The release of the back-end that the files are written for, one of the target's ``VERSIONS``."""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    executables: frozenset[str] = frozenset()
    process_drives_node: bool = False
    """Whether the script runs once a node and drives all its devices (JAX), not once a device."""


def assemble(
    target: TargetName,
    plan: Plan,
    launcher: LauncherName,
    made: TargetFiles,
    *,
    assumptions: tuple[str, ...] = (),
    projections: tuple[Projection, ...] = (),
    settings: LaunchSettings = LaunchSettings(),  # noqa: B008  # frozen
) -> Emission:
    """Add launcher, ``plan.json`` and ``PLAN.md`` to what the target wrote.

    ``plan`` is the projected plan (what the files really say).  Raises TargetRefused when the launcher cannot place
    the ranks, or does not go with the target.
    """
    demand_pair(target, launcher)
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
        target=target,
        plan=plan,
        files={**files, **launch.files},
        launch_command=launch.command,
        environment=dict(made.environment),
        assumptions=assumptions,
        projections=projections,
        executables=made.executables | launch.executables,
        versions=dict(made.versions),
        target_version=made.version,
        launcher=launcher,
        launcher_files=frozenset(launch.files),
        launch_notes=launch.notes,
        script=made.script,
        arguments=made.arguments,
        process_drives_node=made.process_drives_node,
        settings=settings,
    )
    return replace(emission, files={**emission.files, PLAN_MARKDOWN: plan_markdown(emission)})


def launch_again(emission: Emission, settings: LaunchSettings) -> Emission:
    """The same emission with the launcher's files written for ``settings``.  Raises TargetRefused, DocumentInvalid."""
    if settings == emission.settings:
        return emission
    kept = set(emission.files) - emission.launcher_files - {PLAN_JSON, PLAN_MARKDOWN}
    made = TargetFiles(
        files={path: emission.files[path] for path in emission.files if path in kept},
        script=emission.script,
        versions=emission.versions,
        version=emission.target_version,
        arguments=emission.arguments,
        process_drives_node=emission.process_drives_node,
        environment=emission.environment,
        executables=emission.executables & kept,
    )
    return assemble(
        emission.target,
        emission.plan,
        emission.launcher,
        made,
        assumptions=emission.assumptions,
        projections=emission.projections,
        settings=settings,
    )


def plan_json(plan: Plan) -> str:
    """The whole plan, readable and loadable: ``Plan.model_validate_json`` gives it back with the same ``plan_id``."""
    return json.dumps(plan.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
