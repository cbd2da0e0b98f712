"""Writes any plan for a named back-end, whichever back-end it was searched for."""

from __future__ import annotations

from typing import Protocol

from planner.backends.emission.emission import Emission
from planner.backends.folders.emit import emit_for
from planner.backends.launch import LauncherName
from planner.backends.registry import software
from planner.plan.plan import Plan


class Emitter(Protocol):
    """Writes for one back-end, in its default release where none is named."""

    def __call__(self, plan: Plan, launcher: LauncherName, version: str = "") -> Emission: ...


def emitter(name: str) -> Emitter:
    def emit(plan: Plan, launcher: LauncherName, version: str = "") -> Emission:
        return emit_for(software(f"{name}=={version}" if version else name), plan, launcher)

    return emit
