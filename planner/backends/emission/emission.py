"""What a back-end's emission holds: files, a launch command, and what must hold for them to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.backends.launch import LauncherName
from planner.backends.launch.settings import LaunchSettings
from planner.plan.plan import Plan

PLAN_JSON = "plan.json"
PLAN_MARKDOWN = "PLAN.md"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violated rule of a back-end."""

    rule: str
    """Stable id, for example ``megatron.A7``."""
    message: str
    """What is wrong and what would repair it."""
    source: str
    """Project, file and line that enforce the rule, or the page that states it."""
    where: str = ""
    fields: tuple[str, ...] = ()
    """Strategy fields that the rule is about, the first to blame first."""


@dataclass(frozen=True, slots=True)
class BackEndFiles:
    """What one back-end's ``write`` gives.

    ``script`` is the path in ``files`` that every rank runs (see ``LaunchSpec``), with ``arguments``.
    """

    files: Mapping[str, str]
    script: str
    versions: Mapping[str, str]
    """Software that they are written for, for example ``{"megatron-core": "0.19.2"}``."""
    version: str
    """The release of the back-end that the files are written for."""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    executables: frozenset[str] = frozenset()
    process_drives_node: bool = False
    """Whether the script runs once a node and drives all its devices (JAX), not once a device."""
    assumptions: tuple[str, ...] = ()
    """What must hold for the files to do what the plan says."""


@dataclass(frozen=True, slots=True)
class Emission:
    """Everything needed to run a plan on its back-end.

    ``files``: relative path -> text; reading them gives ``(plan.strategy, plan.stages)`` back.
    """

    backend: str
    """A name of the registry."""
    plan: Plan
    written: BackEndFiles
    """What the back-end itself wrote, without the launcher's files and ours."""
    files: Mapping[str, str]
    launch_command: str
    launch_notes: tuple[str, ...] = ()
    """What a person must know or set before starting it."""
    launcher: LauncherName = "torchrun"
    executables: frozenset[str] = frozenset()
    """Paths in ``files`` that get the executable bit."""
    settings: LaunchSettings = field(default_factory=LaunchSettings)
