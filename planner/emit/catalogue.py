"""Which back-ends can we emit for?  A plain dict; a target's module is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

from planner.emit.emission import Emission, LauncherName, Projection, Rule, TargetName
from planner.emit.layout import Layout
from planner.errors import NotFound
from planner.plan import Plan
from planner.strategy import Strategy


class TargetModule(Protocol):
    """What the package of a back-end offers."""

    def rules(self) -> tuple[Rule, ...]:
        """Every validity rule of the back-end that a plan can touch."""
        ...

    def project(self, plan: Plan) -> tuple[Plan, tuple[Projection, ...]]:
        """The nearest plan that the back-end can express, and what was given up.

        An expressible plan comes back unchanged with no projections.  Predicted numbers are kept as they were: the
        caller costs a projected plan again.
        """
        ...

    def emit(self, plan: Plan, launcher: LauncherName) -> Emission:
        """Files and launch command of the plan, projected where needed.  Raises TargetRefused."""
        ...

    def read_back(self, files: Mapping[str, str]) -> tuple[Strategy, Layout]:
        """The strategy and layout that the files say.  Raises DocumentInvalid."""
        ...


TARGETS: dict[TargetName, str] = {
    "megatron": "planner.emit.megatron",
    "deepspeed": "planner.emit.deepspeed",
    "native": "planner.emit.native",
}
"""Target name -> module that has the four functions of ``TargetModule``."""


def target_module(name: str) -> TargetModule:
    """Import the module of a target.  Raises NotFound for a name that is not in ``TARGETS``."""
    for known, path in TARGETS.items():
        if known == name:
            return cast(TargetModule, import_module(path))
    raise NotFound(f"no emitter is called {name!r}", where="--target", hint=f"one of {', '.join(TARGETS)}")
