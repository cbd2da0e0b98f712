"""Tests whether a plan trains: shrink it, emit it, start its ranks on this machine, compare with one process."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf, isfinite
from pathlib import Path

from planner.backends.backend import BackEnd
from planner.backends.emission.write import write_emission
from planner.backends.folders.emit import emit_plan
from planner.backends.folders.shrink import Change, Shrunk, on_one_rank, shrink
from planner.backends.ranks.runner import FP32_TOLERANCE, Runner, SmallRun
from planner.backends.ranks.stop_signals import exits_on_request
from planner.backends.registry import backend, with_files
from planner.errors import BackEndRefused, Conflict, DocumentInvalid, NotFound
from planner.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class TinyOptions:
    """What a person may choose."""

    steps: int = 3
    max_ranks: int = 8
    timeout_s: float = 300.0
    keep: Path | None = None
    """Folder for the emissions and logs; None = they go when all is well."""


@dataclass(frozen=True, slots=True)
class TinyRun:
    """The ranks and the single process, step by step."""

    backend: str
    shrunk: Shrunk
    changes: tuple[Change, ...]
    steps: tuple[StepLosses, ...]
    notes: tuple[str, ...]
    wall_s: float
    folder: Path | None
    tolerance: float = FP32_TOLERANCE
    """Largest relative difference of a loss that counts as parity."""

    @property
    def parity(self) -> bool:
        """Whether every loss agrees."""
        return worst(self.steps) <= self.tolerance


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


def tiny_run(plan: Plan, options: TinyOptions) -> TinyRun:
    """Run the small form of ``plan`` on CPU ranks.

    Losses that differ are an answer, not an error.  Raises BackEndRefused when its back-end has no small form of the
    plan or its ranks fail or take too long (their output then stays, and the error says where), DocumentInvalid,
    NotFound, Conflict (the folder to keep is not empty).
    """
    begin = time.monotonic()
    found_backend, made = runner(plan.backend)
    # Ranks that share the tokens of a diffusion transformer run on a CPU too: Ulysses takes any attention kernel.
    without = "" if plan.problem.model.denoiser else made.without_context_parallelism
    shrunk = shrink(plan, options.max_ranks, context_parallelism=not without)
    folder = _folder(options.keep)
    try:
        with exits_on_request():
            found = made.losses(small_run(shrunk.plan, folder, options.steps, begin + options.timeout_s))
        steps = compared(found.ranks, found.reference)
    except BackEndRefused:
        raise
    except BaseException:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    edits = tuple(Change(key, *pair) for key, pair in made.edits.items())
    done = TinyRun(
        backend=found_backend.name,
        shrunk=shrunk,
        changes=(*shrunk.changes, *edits),
        steps=steps,
        notes=(*_context_note(plan, shrunk, without), *found.notes),
        wall_s=time.monotonic() - begin,
        folder=folder,
        tolerance=found.tolerance,
    )
    if options.keep is None and done.parity:
        shutil.rmtree(folder, ignore_errors=True)
    return done


def small_run(plan: Plan, folder: Path, steps: int, deadline: float) -> SmallRun:
    """A small plan with its launch files, which are written where they are asked for."""

    def on_ranks() -> Path:
        return write_emission(emit_plan(plan, "torchrun"), folder / "ranks")

    def alone() -> Path:
        return write_emission(emit_plan(on_one_rank(plan), "torchrun"), folder / "one-process")

    return SmallRun(plan, folder, steps, deadline, on_ranks, alone)


def _context_note(plan: Plan, shrunk: Shrunk, reason: str) -> tuple[str, ...]:
    before, after = plan.chosen().cp, shrunk.plan.chosen().cp
    return (f"the {before} context-parallel ranks became data-parallel ones: {reason}",) if before > after == 1 else ()


def _folder(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="meshwright-run-"))
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise Conflict(f"{keep} is not an empty folder", where="--keep", hint="name a new folder")
    keep.mkdir(parents=True, exist_ok=True)
    return keep.resolve()


@dataclass(frozen=True, slots=True)
class StepLosses:
    """One step, on the ranks and in one process."""

    loss: float
    reference_loss: float

    @property
    def relative_difference(self) -> float:
        """|loss - reference| / |reference|; infinite when either is no number."""
        if not (isfinite(self.loss) and isfinite(self.reference_loss)):
            return inf
        if self.loss == self.reference_loss:
            return 0.0
        return abs(self.loss - self.reference_loss) / abs(self.reference_loss) if self.reference_loss else inf


def compared(losses: Sequence[float], references: Sequence[float]) -> tuple[StepLosses, ...]:
    """Pair the steps.  Raises ValueError when there are not equally many."""
    return tuple(StepLosses(*pair) for pair in zip(losses, references, strict=True))


def worst(steps: Sequence[StepLosses]) -> float:
    """The largest relative difference of all steps."""
    return max(step.relative_difference for step in steps)
