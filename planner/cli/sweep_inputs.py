"""The sweep that the file and the flags describe: flags replace what the file says of the same thing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.backend_names import parse_backends
from planner.cli.problem_inputs import LARGEST_COUNT, chance
from planner.cli.workload_flags import KindFlags
from planner.errors import DocumentInvalid
from planner.strategy.fields import PINNABLE
from planner.strategy.text import parse_assignments, parse_forbids

if TYPE_CHECKING:
    from planner.answers.sweep.grid import Cell
    from planner.answers.sweep.question import SweepQuestion
    from profiles.device import Device
    from profiles.prediction.reference import ProfileReference

MOST_CELLS = 100_000
AXES = {
    "models": "--model",
    "clusters": "--cluster",
    "device_counts": "--devices",
    "sequence_lengths": "--sequence-length",
    "global_batch_sizes": "--global-batch-size",
}
"""Field of the document -> flag."""
OPTIONAL = "device_counts"


@dataclass(frozen=True, slots=True)
class SweepFlags:
    """What the command line says; empty and None = not said."""

    file: Path | None
    axes: dict[str, list[str] | None]
    kinds: KindFlags
    pins: list[str] = field(default_factory=list)
    forbids: list[str] = field(default_factory=list)
    backend: str | None = None
    memory_margin: float | None = None
    fits: float | None = None


def read_question(flags: SweepFlags) -> SweepQuestion:
    """The checked sweep.  Raises DocumentInvalid or NotFound."""
    from planner.answers.sweep.question import SweepQuestion
    from planner.operations.reading import read_yaml
    from profiles.validation import read_document

    data: Any = {} if flags.file is None else read_yaml(flags.file)
    if isinstance(data, dict):
        data = {**data, **_said(flags)}
        if constraints := _constraints(flags):
            given = data.get("constraints", {})
            data["constraints"] = {**given, **constraints} if isinstance(given, dict) else given
        if flags.file is None:
            _complete(data)
    question = read_document(SweepQuestion, data, str(flags.file or "sweep"))
    if question.num_cells > MOST_CELLS:
        raise DocumentInvalid(
            f"{question.num_cells:,} cells", where="sweep", hint=f"ask for at most {MOST_CELLS:,} at a time"
        )
    return question


def read_cells(question: SweepQuestion, profile: str) -> tuple[Cell, ...]:
    """Every cell, with the models, clusters and measurements that its names mean.  Raises DocumentInvalid, NotFound."""
    from planner.answers.sweep.grid import Sources, grid
    from planner.model.load import load_model
    from planner.operations.profile_choice import chosen_profile
    from profiles.catalogue import load_cluster
    from profiles.scaling import scale_cluster

    by_name: dict[str, ProfileReference | None] = {}

    def profile_of(device: Device) -> ProfileReference | None:
        key = device.content_hash()
        if key not in by_name:
            by_name[key] = chosen_profile(profile, device)
        return by_name[key]

    return grid(question, Sources(load_model, cache(load_cluster), scale_cluster, profile_of))


def split_words(texts: list[str] | None) -> list[str]:
    """``["a,b", "c"]`` as ``["a", "b", "c"]``."""
    return [word.strip() for text in texts or [] for word in text.split(",") if word.strip()]


def _said(flags: SweepFlags) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, texts in flags.axes.items():
        words = split_words(texts)
        if words:
            said[name] = words if name in {"models", "clusters"} else [_count(word, AXES[name]) for word in words]
    return said | flags.kinds.said()


def _constraints(flags: SweepFlags) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if flags.pins:
        said["pins"] = parse_assignments(flags.pins, "--pin", PINNABLE)
    if flags.forbids:
        said["forbids"] = list(parse_forbids(flags.forbids, "--forbid"))
    if flags.backend is not None:
        said["backends"] = list(parse_backends(flags.backend))
    if flags.memory_margin is not None:
        said["memory_margin_fraction"] = flags.memory_margin
    if flags.fits is not None:
        chance(flags.fits)
        said["fits"] = flags.fits
    return said


def _complete(data: dict[str, Any]) -> None:
    missing = [flag for name, flag in AXES.items() if name not in data and name != OPTIONAL]
    if missing:
        raise DocumentInvalid(
            "the sweep is not described",
            where=" ".join(missing),
            hint=f"name a sweep FILE, or give {' and '.join(missing)}",
        )


def _count(word: str, where: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= len(str(LARGEST_COUNT))):
        raise DocumentInvalid(
            f"{word!r} is not a whole number", where=where, hint="give counts with commas between them: 8,16,32"
        )
    return int(word)
