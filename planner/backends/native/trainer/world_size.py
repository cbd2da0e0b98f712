"""Were as many processes started as the plan has ranks?"""

from __future__ import annotations

import os

from planner.errors import DocumentInvalid


def started_world_size() -> int:
    """Processes that the launcher says it started; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def require_world_size(wanted: int, world_size: int, instead: str) -> None:
    """Raise DocumentInvalid unless exactly ``wanted`` processes run; ``instead`` is what to plan for otherwise."""
    if world_size != wanted:
        raise DocumentInvalid(
            f"the plan is for {wanted} ranks, and {world_size} {'was' if world_size == 1 else 'were'} started",
            where="WORLD_SIZE",
            hint=f"start {wanted} ranks with torchrun, or plan for {instead}",
        )
