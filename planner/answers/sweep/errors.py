"""The errors of the executors of a sweep.

MeshwrightError
└── ExecutorUnavailable             exit 3   Ray is not installed, or its cluster does not answer
"""

from __future__ import annotations

from profiles.errors import MeshwrightError


class ExecutorUnavailable(MeshwrightError):
    """What should run the cells is not installed, or cannot be reached."""

    slug = "executor-unavailable"
    exit_code = 3
    http_status = 503
