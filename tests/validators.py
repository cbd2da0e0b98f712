"""Validators in tests: asked where they are installed, skipped with a message where not (a failure in `make test`)."""

from __future__ import annotations

import pytest

from planner.backends.checking.environment import is_ready
from planner.backends.checking.worker import Worker
from planner.backends.folders.catalogue import validator

ALIVE = 3
"""Validators of a session whose processes may live at once: each holds torch, JAX or Ray in memory."""


def worker_or_skip(name: str, version: str | None = None) -> Worker:
    """A worker of the validator, not started yet; close it.  Skips where its packages are not installed."""
    found = validator(name)
    wanted = version or found.default_version
    if not is_ready(found, wanted):
        pytest.skip(f"validator {name}=={wanted} is not installed: python -m tests.install_validators {name}")
    return Worker(found, wanted)


class SharedWorkers:
    """The validators of a session (the fixture ``shared_workers``), each imported once for all files that ask it."""

    def __init__(self) -> None:
        self._workers: dict[tuple[str, str | None], Worker] = {}

    def worker(self, name: str, version: str | None = None) -> Worker:
        """Its worker; tests do not close it.  Skips as ``worker_or_skip``."""
        key = (name, version)
        found = self._workers.pop(key, None) or worker_or_skip(name, version)
        # The last asked is the last to end; one that was ended starts again when it is asked.
        self._workers[key] = found
        for other in list(self._workers)[:-ALIVE]:
            self._workers[other].close()
        return found

    def close(self) -> None:
        """End all of them."""
        for each in self._workers.values():
            each.close()
