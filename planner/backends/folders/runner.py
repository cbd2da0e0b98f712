"""How is a small form of a plan tried on CPU ranks?  What the room of a back-end offers (``tiny_run.RUNNER``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from planner.backends.backend import BackEnd
from planner.backends.registry import backend, with_files
from planner.errors import DocumentInvalid, NotFound
from planner.plan import Plan


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of every step, on the ranks and in one process."""

    ranks: tuple[float, ...]
    reference: tuple[float, ...]
    notes: tuple[str, ...] = ()
    """What was done that the reader should know, for example a second launch."""


@dataclass(frozen=True, slots=True)
class Runner:
    """How one back-end trains a small form."""

    losses: Callable[[Plan, Path, int, float], Losses]
    """(plan, folder, steps, deadline): emit the small plan below the folder and run it and its reference.  Raises
    BackEndRefused."""
    requires: tuple[str, ...]
    """Python packages that must be importable here."""
    install: str
    """What installs them."""
    edits: Mapping[str, tuple[str, str]]
    """What a CPU run changes in the emitted files: name -> (emitted, here)."""
    without_context_parallelism: str = ""
    """Why cp ranks become data-parallel ones on a CPU; empty where they do not."""


def runner(name: str) -> tuple[BackEnd, Runner]:
    """The runner of a back-end.

    Raises NotFound (unknown, or its packages are missing), DocumentInvalid (it has none).
    """
    found = backend(name)
    if found.tiny_run is None:
        able = ", ".join(each.name for each in with_files() if each.tiny_run is not None)
        raise DocumentInvalid(
            f"{name} has no runner on CPU ranks",
            where="--backend",
            hint=f"one of {able}; `meshwright check` asks the back-end's own parser",
        )
    made = found.tiny_run()
    missing = [package for package in made.requires if find_spec(package) is None]
    if missing:
        raise NotFound(f"{', '.join(missing)} is not installed", where=f"--backend {name}", hint=made.install)
    return found, made
