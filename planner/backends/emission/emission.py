"""What do we hand to a back-end?  Files, a launch command, and what must hold for them to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from planner.backends.launch.settings import LaunchSettings
from planner.plan import Plan

BackEndName = str
"""A name of the registry (``planner.backends.registry``)."""
LauncherName = Literal[
    "torchrun", "slurm", "kubernetes", "trainjob", "pytorchjob", "volcano", "mpirun", "mpijob", "ray", "ray-train",
    "ascendjob",
]  # fmt: skip
"""``kubernetes`` is a JobSet; ``trainjob`` and ``pytorchjob`` are Kubeflow's."""


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
class Emission:
    """Everything needed to run a plan on its back-end.

    ``files``: relative path -> text; reading them gives ``(plan.strategy, plan.stages)`` back.
    """

    backend: BackEndName
    plan: Plan
    files: Mapping[str, str]
    launch_command: str
    environment: Mapping[str, str]
    assumptions: tuple[str, ...] = ()
    executables: frozenset[str] = field(default_factory=frozenset)
    """Paths in ``files`` that get the executable bit."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Software that the files are written for, for example ``{"megatron-core": "0.19.2"}``."""
    release: str = ""
    """The release of the back-end that the files are written for."""
    launcher: LauncherName = "torchrun"
    launcher_files: frozenset[str] = frozenset()
    """Paths in ``files`` that are the launcher's."""
    launch_notes: tuple[str, ...] = ()
    """What a person must know or set before starting it."""
    script: str = ""
    """The path in ``files`` that every rank runs, with ``arguments``."""
    arguments: tuple[str, ...] = ()
    process_drives_node: bool = False
    """Whether one process drives all devices of a node (JAX) instead of one process a device."""
    settings: LaunchSettings = field(default_factory=LaunchSettings)
