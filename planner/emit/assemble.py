"""How does a target's work become an ``Emission``?  Its files + the launcher's + ``plan.json`` + ``PLAN.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.emit.describe import plan_markdown
from planner.emit.emission import Emission, LauncherName, Projection, TargetName
from planner.emit.launch.spec import launch_files, launch_spec
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
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    executables: frozenset[str] = frozenset()


def assemble(
    target: TargetName,
    plan: Plan,
    launcher: LauncherName,
    made: TargetFiles,
    *,
    assumptions: tuple[str, ...] = (),
    projections: tuple[Projection, ...] = (),
) -> Emission:
    """Add launcher, ``plan.json`` and ``PLAN.md`` to what the target wrote.

    ``plan`` is the projected plan (what the files really say).  Raises TargetRefused when the launcher cannot place
    the ranks.
    """
    launch = launch_files(launch_spec(plan, made.script, made.environment, made.arguments), launcher)
    emission = Emission(
        target=target,
        plan=plan,
        files={**made.files, **launch.files, PLAN_JSON: plan_json(plan)},
        launch_command=launch.command,
        environment=dict(made.environment),
        assumptions=assumptions,
        projections=projections,
        executables=made.executables | launch.executables,
        versions=dict(made.versions),
        launcher=launcher,
    )
    return replace(emission, files={**emission.files, PLAN_MARKDOWN: plan_markdown(emission)})


def plan_json(plan: Plan) -> str:
    """The whole plan, readable and loadable: ``Plan.model_validate_json`` gives it back with the same ``plan_id``."""
    return json.dumps(plan.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
