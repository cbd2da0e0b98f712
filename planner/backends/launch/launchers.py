"""The launchers: each writes its own files around one job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from planner.backends.launch import (
    LauncherName,
    ascendjob,
    kubernetes,
    mpijob,
    mpirun,
    pytorchjob,
    ray,
    ray_train,
    slurm,
    torchrun,
    trainjob,
    volcano,
)
from planner.backends.launch.spec import LaunchFiles, LaunchSpec
from planner.errors import BackEndRefused, NotFound

LAUNCHERS: Mapping[LauncherName, Callable[[LaunchSpec], LaunchFiles]] = MappingProxyType(
    {
        "torchrun": torchrun.launch_files,
        "slurm": slurm.launch_files,
        "kubernetes": kubernetes.launch_files,
        "trainjob": trainjob.launch_files,
        "pytorchjob": pytorchjob.launch_files,
        "volcano": volcano.launch_files,
        "mpirun": mpirun.launch_files,
        "mpijob": mpijob.launch_files,
        "ray": ray.launch_files,
        "ray-train": ray_train.launch_files,
        "ascendjob": ascendjob.launch_files,
    }
)
UNEQUAL_NODES: frozenset[LauncherName] = frozenset({"torchrun", "slurm", "kubernetes", "ray"})
"""Those that start a job over several kinds of nodes."""


def launch_files(spec: LaunchSpec, launcher: LauncherName) -> LaunchFiles:
    """Write the launcher's files.  Raises NotFound for an unknown launcher, BackEndRefused where it cannot do it."""
    if launcher not in LAUNCHERS:
        raise NotFound(f"no launcher is called {launcher!r}", where="--launcher", hint=f"one of {', '.join(LAUNCHERS)}")
    if spec.groups and launcher not in UNEQUAL_NODES:
        raise BackEndRefused(
            f"{launcher} starts equally many ranks on equal nodes, and this plan has {len(spec.groups)} kinds of them",
            where="--launcher",
            hint=f"choose one of {', '.join(name for name in LAUNCHERS if name in UNEQUAL_NODES)}",
        )
    return LAUNCHERS[launcher](spec)
