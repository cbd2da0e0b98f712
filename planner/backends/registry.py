"""Which back-ends can we emit for?  A plain dict; a target's module is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

from planner.backends.emission.emission import Emission, LauncherName, Projection, Rule, TargetName
from planner.backends.emission.layout import Layout
from planner.errors import NotFound
from planner.plan import Plan
from planner.strategy import Strategy


class TargetModule(Protocol):
    """What the package of a back-end offers."""

    VERSIONS: tuple[str, ...]
    """Releases of the back-end that files can be written for, the default first."""

    def rules(self) -> tuple[Rule, ...]:
        """Every validity rule of the back-end that a plan can touch."""
        ...

    def project(self, plan: Plan) -> tuple[Plan, tuple[Projection, ...]]:
        """The nearest plan that the back-end can express, and what was given up.

        An expressible plan comes back unchanged with no projections.  Predicted numbers are kept as they were: the
        caller costs a projected plan again.
        """
        ...

    def emit(self, plan: Plan, launcher: LauncherName, version: str = ...) -> Emission:
        """Files and launch command of the plan, projected where needed.  ``version`` is one of ``VERSIONS``.

        Raises TargetRefused.
        """
        ...

    def read_back(self, files: Mapping[str, str]) -> tuple[Strategy, Layout]:
        """The strategy and layout that the files say.  Raises DocumentInvalid."""
        ...


TARGETS: dict[TargetName, str] = {
    "megatron": "planner.backends.megatron",
    "mindspeed": "planner.backends.mindspeed",
    "megatron-bridge": "planner.backends.megatron_bridge",
    "deepspeed": "planner.backends.deepspeed",
    "native": "planner.backends.native",
    "maxtext": "planner.backends.maxtext",
    "accelerate": "planner.backends.accelerate",
    "torchtitan": "planner.backends.torchtitan",
}
"""Target name -> module that has the four functions of ``TargetModule``."""


def target_name(name: str) -> TargetName:
    """The name, known to be one of ``TARGETS``.  Raises NotFound."""
    for known in TARGETS:
        if known == name:
            return known
    raise NotFound(f"no emitter is called {name!r}", where="--target", hint=f"one of {', '.join(TARGETS)}")


def target_module(name: str) -> TargetModule:
    """Import the module of a target.  Raises NotFound for a name that is not in ``TARGETS``."""
    return cast(TargetModule, import_module(TARGETS[target_name(name)]))


def named_release(text: str) -> tuple[TargetName, str]:
    """``torchtitan==0.2.2`` -> target and release; without ``==`` the target's default release.

    Raises NotFound for an unknown target, or a release that we cannot write files for.
    """
    name, separator, version = text.partition("==")
    target = target_name(name)
    versions = target_module(target).VERSIONS
    if separator and version not in versions:
        hint = f"{target} files can be written for {', '.join(versions)}"
        raise NotFound(f"no {target} files for version {version!r}", where=f"--target {text}", hint=hint)
    return target, version or versions[0]
