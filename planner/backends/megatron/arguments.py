"""Megatron's arguments in a file: ``megatron.args``, one flag a line, ``#`` starts a comment line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.errors import DocumentInvalid

ARGUMENTS_FILE = "megatron.args"

Words = tuple[str, ...]
Arguments = Mapping[str, Words]
"""Flag with its dashes -> its values, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Section:
    """Some flags under one heading; ``reasons``: why a flag is not at its default, a comment above it."""

    title: str
    arguments: Arguments
    reasons: Mapping[str, str] = field(default_factory=dict)

    def comments(self, flag: str) -> tuple[str, ...]:
        """The comment lines above a flag: one or none."""
        return (f"# {flag}: {self.reasons[flag]}",) if flag in self.reasons else ()


def write_arguments(sections: tuple[Section, ...]) -> str:
    """The text of the file."""
    blocks = []
    for section in sections:
        lines = [
            line
            for flag, words in section.arguments.items()
            for line in (*section.comments(flag), " ".join((flag, *words)))
        ]
        if lines:
            blocks.append("\n".join((f"# {section.title}", *lines)))
    return "\n\n".join(blocks) + "\n"


def parse_arguments(text: str, where: str = ARGUMENTS_FILE) -> dict[str, Words]:
    """Inverse of ``write_arguments``, headings dropped.  Raises DocumentInvalid for a line that is not one flag."""
    arguments: dict[str, Words] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if not words[0].startswith("--"):
            raise DocumentInvalid(f"{words[0]!r} is not a flag", where=f"{where}:{number}", hint="one --flag a line")
        if words[0] in arguments:
            raise DocumentInvalid(f"{words[0]} is given twice", where=f"{where}:{number}", hint="remove one of them")
        arguments[words[0]] = tuple(words[1:])
    return arguments


def argument_vector(text: str) -> list[str]:
    """The words as a shell would pass them."""
    return [word for flag, words in parse_arguments(text).items() for word in (flag, *words)]


@dataclass(frozen=True, slots=True)
class ArgumentReader:
    """Typed look-ups in parsed arguments; every failure names the flag."""

    arguments: Arguments
    where: str = ARGUMENTS_FILE

    def at(self, name: str) -> str:
        """Where a flag stands, for the failures that a reader of several flags finds."""
        return f"{self.where}#{name}"

    def flag(self, name: str) -> bool:
        """Whether a switch is given."""
        return name in self.arguments

    def word(self, name: str, default: str) -> str:
        """The single value of a flag."""
        words = self.arguments.get(name)
        if words is None:
            return default
        if len(words) != 1:
            raise DocumentInvalid(f"{name} takes one value, not {len(words)}", where=self.where)
        return words[0]

    def words(self, name: str) -> Words:
        """All values of a flag, none when it is absent."""
        return self.arguments.get(name, ())

    def integer(self, name: str, default: int | None = None) -> int:
        """A positive number; a flag without default must be there."""
        text = self.word(name, "" if default is None else str(default))
        if not text.isascii() or not text.isdigit():
            what = f"{name} is missing" if not text else f"{name} takes a whole number, not {text!r}"
            raise DocumentInvalid(what, where=self.where, hint="emit the plan again")
        return int(text)
