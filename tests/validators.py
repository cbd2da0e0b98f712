"""Validators in tests: asked where they are installed, skipped with a message where not (a failure in `make test`)."""

from __future__ import annotations

import pytest

from planner.backends.checking.environment import is_ready
from planner.backends.checking.worker import Worker
from planner.backends.folders.catalogue import validator


def worker_or_skip(name: str, version: str | None = None) -> Worker:
    """A worker of the validator, not started yet; close it.  Skips where its packages are not installed."""
    found = validator(name)
    wanted = version or found.default_version
    if not is_ready(found, wanted):
        pytest.skip(f"validator {name}=={wanted} is not installed: python -m tests.install_validators {name}")
    return Worker(found, wanted)
