"""Starts a script on every rank: one ``LaunchSpec``, one file a launcher."""

from __future__ import annotations

from typing import Literal

LauncherName = Literal[
    "torchrun", "slurm", "kubernetes", "trainjob", "pytorchjob", "volcano", "mpirun", "mpijob", "ray", "ray-train",
    "ascendjob",
]  # fmt: skip
"""The one list (``launchers.LAUNCHERS`` has a writer for each).  ``kubernetes`` is a JobSet; ``trainjob`` and
``pytorchjob`` are Kubeflow's."""
