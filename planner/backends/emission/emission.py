"""What do we hand to a back-end?  Files, a launch command, and what the back-end could not express."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from planner.backends.launch.settings import LaunchSettings
from planner.plan import Plan

TargetName = Literal[
    "megatron", "mindspeed", "megatron-bridge", "deepspeed", "torchtitan", "native", "accelerate", "maxtext"
]
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


@dataclass(frozen=True, slots=True)
class Rule:
    """One validity rule of a back-end: ``check`` returns a message when the plan breaks it, else None."""

    id: str
    source: str
    check: Callable[[Plan], str | None]


@dataclass(frozen=True, slots=True)
class Projection:
    """A part of the plan that the target cannot say, and what is emitted instead."""

    field: str
    wanted: str
    emitted: str
    reason: str
    kept_by: tuple[TargetName, ...] = ()
    """Other targets that run the plan, or a projection of it, with the wanted value."""


@dataclass(frozen=True, slots=True)
class Emission:
    """Everything needed to run a plan on one target.

    ``files``: relative path -> text.  ``plan`` is the plan that the files really say (equal to the input unless
    ``projections`` is not empty), and ``read_back(files) == (plan.strategy, plan.stages)``.
    """

    target: TargetName
    plan: Plan
    files: Mapping[str, str]
    launch_command: str
    environment: Mapping[str, str]
    assumptions: tuple[str, ...] = ()
    projections: tuple[Projection, ...] = ()
    executables: frozenset[str] = field(default_factory=frozenset)
    """Paths in ``files`` that get the executable bit."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Software that the files are written for, for example ``{"megatron-core": "0.19.2"}``."""
    target_version: str = ""
    """The release of the back-end that was chosen, one of the target's ``VERSIONS``."""
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
