"""A summary of a back-end: one line of data."""

from __future__ import annotations

from typing import Any, get_args

from planner.backends.backend import BackEnd
from planner.backends.launch import LauncherName


def backend_summary(found: BackEnd) -> dict[str, Any]:
    """Name, releases with the default first, devices and the launchers that start its files."""
    writes_files = found.files is not None
    launchers = [each for each in get_args(LauncherName) if writes_files and each not in found.not_started_by]
    return {
        "name": found.name,
        "title": found.title,
        "summary": found.summary,
        "releases": [each.version for each in found.releases],
        "vendors": sorted(found.vendors),
        "writes_files": writes_files,
        "predicts_only": [each.version for each in found.releases if each.predicts_only or not writes_files],
        "launchers": launchers,
    }
