"""A launch script as it is said: its path or text, its environment, what is named beside it, and the files it reads."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.model.spec import ModelSpec

_FOLDERS_ABOVE = 4
"""A script names files from its own folder, or from the top of the repository that it stands in."""


@dataclass(frozen=True, slots=True)
class SaidScript:
    """A launch script, and what is said beside it.

    ``variables``: its environment.  ``arguments``: its own; None = nothing is said of them.  ``vocab_size``: tokens of
    its tokenizer.  ``devices``: instead of the script's own number.  ``model``: of a file that says none.

    ``sent``: its text where it is no file of this machine; ``beside``: then the texts of the files that it reads, by
    the names that it calls them.
    """

    path: str
    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] | None = None
    vocab_size: int | None = None
    devices: int | None = None
    model: str | Mapping[str, Any] | ModelSpec | None = None
    sent: str | None = None
    beside: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where errors are: the file, or the part of a request."""
        return self.path if self.sent is None else "/text"


def is_yaml(path: str) -> bool:
    """Whether a file's name is that of a YAML file."""
    return Path(path).suffix.lower() in {".yaml", ".yml"}


def stand_in(said: SaidScript) -> ModelSpec | None:
    """The model that is named beside a file."""
    from planner.model.builtin import builtin_model
    from planner.operations.question import model_of

    if isinstance(said.model, str) and said.sent is not None:
        return builtin_model(said.model)  # no file of this machine
    return None if said.model is None else model_of(said.model)


def launched(said: SaidScript) -> int | None:
    """Devices that the launcher's variable says."""
    world = said.variables.get("WORLD_SIZE", "")
    return int(world) if world.isdecimal() else None


def file_beside(said: SaidScript, name: str) -> str | None:
    """A file that a script reads: sent with it, or on this machine beside it or where the command runs."""
    from planner.operations.reading import read_text

    if said.sent is not None:
        texts = {posixpath.normpath(each): text for each, text in said.beside.items()}
        return texts.get(posixpath.normpath(name), texts.get(Path(name).name))
    above = Path(said.path).absolute().parents
    for place in (*(folder / name for folder in above[:_FOLDERS_ABOVE]), Path(name)):
        if place.is_file():
            return read_text(place)
    return None
