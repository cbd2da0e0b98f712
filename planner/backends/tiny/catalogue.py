"""Which targets can be tried on CPU ranks?  A plain dict; a runner's module is imported when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, cast

from planner.backends.emission.emission import TargetName
from planner.backends.registry import target_name
from planner.errors import DocumentInvalid, NotFound
from planner.plan import Plan


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of every step, on the ranks and in one process."""

    ranks: tuple[float, ...]
    reference: tuple[float, ...]
    notes: tuple[str, ...] = ()
    """What was done that the reader should know, for example a second launch."""


class Runner(Protocol):
    """What the module of a target offers."""

    REQUIRES: tuple[str, ...]
    """Python packages that must be importable here."""
    INSTALL: str
    """What installs them."""
    EDITS: dict[str, tuple[str, str]]
    """What a CPU run changes in the emitted files: name -> (emitted, here)."""
    WITHOUT_CONTEXT_PARALLELISM: str
    """Why cp ranks become data-parallel ones on a CPU; empty where they do not."""

    def losses(self, plan: Plan, folder: Path, steps: int, deadline: float) -> Losses:
        """Emit the small ``plan`` below ``folder`` and run it and its reference.  Raises TargetRefused."""
        ...


RUNNERS: dict[TargetName, str] = {
    "native": "planner.backends.native.tiny_run",
    "deepspeed": "planner.backends.deepspeed.tiny_run",
    "megatron": "planner.backends.megatron.tiny_run",
}
"""Target -> module that has what ``Runner`` says."""


def runner(name: str) -> tuple[TargetName, Runner]:
    """The runner of a target.  Raises NotFound (unknown, or its packages are missing), DocumentInvalid (has none)."""
    target = target_name(name)
    path = RUNNERS.get(target)
    if path is None:
        raise DocumentInvalid(
            f"{target} has no runner on CPU ranks",
            where="--target",
            hint=f"one of {', '.join(RUNNERS)}; `meshwright check` asks the target's own parser",
        )
    found = cast(Runner, import_module(path))
    missing = [package for package in found.REQUIRES if find_spec(package) is None]
    if missing:
        raise NotFound(f"{', '.join(missing)} is not installed", where=f"--target {target}", hint=found.INSTALL)
    return target, found
