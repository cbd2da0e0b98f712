"""Does a back-end go with a launcher?  What depends on the devices is refused by the launcher itself."""

from __future__ import annotations

from planner.backends.emission.emission import BackEndName, LauncherName
from planner.backends.registry import backend
from planner.errors import BackEndRefused


def demand_pair(name: BackEndName, launcher: LauncherName) -> None:
    """Raises BackEndRefused where the launcher cannot start the back-end."""
    found = backend(name).not_started_by.get(launcher)
    if found:
        reason, hint = found
        raise BackEndRefused(f"{name} cannot be started by {launcher}: {reason}", where="--launcher", hint=hint)
