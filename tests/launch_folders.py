"""A launcher's files in a folder, ready to be started, for tests that start them."""

from __future__ import annotations

from pathlib import Path

from planner.backends.launch import LauncherName
from planner.backends.launch.launchers import launch_files
from planner.backends.launch.spec import LaunchFiles, LaunchSpec


def write_launch(folder: Path, spec: LaunchSpec, launcher: LauncherName) -> LaunchFiles:
    """Write the launcher's files and those of ``spec.files``."""
    made = launch_files(spec, launcher)
    for name, text in {**spec.files, **made.files}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return made
