"""Variables of a script, and what its text alone does not say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UNKNOWN = "\x00"
"""Stands around the name of what the text does not say: ``\\0NAME\\0``."""
KEPT_SPACE = "\x01"
"""A space inside such a mark: it does not split a word."""
MAX_VALUE_LENGTH = 1_000_000

Value = str | tuple[str, ...] | Mapping[str, str]
"""A variable, an array, an associative array."""


def unknown(shown: str) -> str:
    """The mark of what the text does not decide."""
    return f"{UNKNOWN}{shown.replace(' ', KEPT_SPACE)}{UNKNOWN}"


def plain(text: str) -> str:
    """With the spaces of marks as spaces again."""
    return text.replace(KEPT_SPACE, " ")


def names_in(text: str) -> tuple[str, ...]:
    """What the marks of a text name: ``$TP``, ``command output``."""
    return tuple(dict.fromkeys(plain(part) for part in text.split(UNKNOWN)[1::2]))


@dataclass(frozen=True, slots=True)
class Undecided:
    """A place that the text does not decide, and the words that would decide it."""

    line: int
    what: str
    say: str


@dataclass(slots=True)
class Record:
    """What was met on the way, shared by all scopes of one reading."""

    taken_as_unset: dict[str, int] = field(default_factory=dict)
    """Variables that the script tests or gives a default, with the line: they are taken as not set."""
    undecided: list[tuple[Undecided, frozenset[str], tuple[str, ...]]] = field(default_factory=list)
    """A condition, the variables that depend on it, the words that only it would add."""
    assigned: frozenset[str] = frozenset()
    """Names that the script's text assigns somewhere: where it was not reached, they are empty."""
    files: dict[str, str] = field(default_factory=dict)
    """Texts that here-documents wrote."""
    line: int = 0
    """Of the command that is followed."""
    steps: int = 0


@dataclass(slots=True)
class Scope:
    """Variables so far.  ``arguments`` None: nothing was said of the script's own arguments."""

    values: dict[str, Value]
    arguments: tuple[str, ...] | None
    record: Record
    script: str = "script.sh"
    functions: dict[str, object] = field(default_factory=dict)
    saved: list[dict[str, Value | None]] = field(default_factory=list)
    """Of each function that runs: the outer values of its locals."""

    def fork(self) -> Scope:
        """The same variables, to be changed apart."""
        return Scope(dict(self.values), self.arguments, self.record, self.script, dict(self.functions), [])

    def store(self, name: str, value: Value) -> None:
        """Assign; a value that grew too long becomes unknown (``A=$A$A``, forty times over)."""
        parts = (value,) if isinstance(value, str) else tuple(value.values()) if isinstance(value, Mapping) else value
        self.values[name] = unknown(f"${name}") if sum(map(len, parts)) > MAX_VALUE_LENGTH else value

    def elements(self, name: str) -> tuple[str, ...] | None:
        """All elements of an array, or the variable alone; None where it is not set."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            return (value,)
        return tuple(value.values()) if isinstance(value, Mapping) else value

    def text(self, name: str) -> str | None:
        """A variable, or the first element of an array; None where it is not set."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, Mapping):
            return value.get("0", "")
        return value[0] if value else None

    def positional(self, name: str) -> str | None:
        """``$1``, ``${10}``, ``$#``, ``$0``; None where nothing was said."""
        if name == "0":
            return self.script
        if name == "#":
            return str(len(self.arguments)) if self.arguments is not None else None
        if self.arguments is None:
            return None
        place = int(name) - 1
        return self.arguments[place] if place < len(self.arguments) else ""

    def assume_unset(self, name: str) -> None:
        """Remember that a test or a default took ``name`` as not set."""
        shown = name if name[:1].isalpha() or name[:1] == "_" else f"${name}"
        self.record.taken_as_unset.setdefault(shown, self.record.line)
