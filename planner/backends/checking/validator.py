"""A validator: the back-end's (or launcher's) own parser and checks, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.backends.checking.emitted import EmittedFolder

Request = Mapping[str, Any]
"""JSON object for a worker; what is in it is between a validator's module and its worker script."""


@dataclass(frozen=True, slots=True)
class Validator:
    """One checker that ``--with NAME[==VERSION]`` can name.

    A worker script gets the overlay folder as its only argument and answers requests, one JSON object a line:
    ``{"accepted": bool, "stage": str, "message": str, "facts": {...}}``.  ``stage`` says where it stopped.
    """

    name: str
    """As users of the software write it: ``megatron-core``, ``sbatch``."""
    default_version: str
    worker: Path
    """The script that its process runs; it imports nothing of ours."""
    applies: Callable[[EmittedFolder], bool]
    request: Callable[[EmittedFolder], Request]
    """From the folder's files (never from ``plan.json`` alone) to what the worker is asked."""
    packages: Callable[[str], tuple[str, ...]] = lambda version: ()
    """Requirements of the overlay for a version, each with its exact version; installed without dependencies."""
    install: Callable[[Path, str], None] | None = None
    """How the overlay is filled where pip cannot; gets a fresh folder and the version."""
    base_modules: tuple[str, ...] = ()
    """Modules that the interpreter itself must have, for example torch."""
    of_interpreter: str = ""
    """Distribution of the interpreter itself that is the validator (torch): only its own version can be asked."""
    environment: Callable[[Path], Mapping[str, str]] = lambda overlay: {}
    """Variables of the worker process."""
    executes_files: bool = False
    """Whether the worker runs code of the folder (a Python config module): never done once a file was edited."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one validator said about one folder."""

    validator: str
    version: str
    accepted: bool
    stage: str
    message: str
    facts: Mapping[str, Any]
    """``lacking``: what the software here cannot do for the files, in words; the job's own may be newer."""
    wall_s: float
