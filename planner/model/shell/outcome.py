"""What following a script gives: the commands that it would run, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the script would run."""

    words: tuple[str, ...]
    line: int
    conditional: bool = False


class Stopped(Exception):
    """``exit``, ``return``, ``break`` or ``continue`` of the followed script."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class TooLongError(Exception):
    """The script takes more steps than a launch script does."""
