"""The flags of an engine's launcher as its own parser has them, and launch words in their terms.

A snapshot (``flags_<release>.json`` in the engine's room) is made from the real parser by
``python -m planner.serving.engines.snapshot``; with it unknown and removed flags are found without the engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from planner.errors import DocumentInvalid
from planner.serving.engines.engine import HEAD, OWN, PORT, RANK, SIDE, Arguments

FlagKind = Literal["value", "switch", "boolean", "list"]
"""``switch``: stands alone.  ``boolean``: stands alone, and ``--no-...`` turns it off.  ``list``: several words."""
_PLACES = {HEAD, OWN, PORT, RANK, SIDE}


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: the argument that it sets, the words for it, the values it takes."""

    argument: str
    words: tuple[str, ...]
    kind: FlagKind
    choices: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The long form, as it is written."""
        return next((word for word in self.words if word.startswith("--") and not word.startswith("--no-")), "")


@dataclass(frozen=True, slots=True)
class FlagTable:
    """All flags of one release."""

    engine: str
    release: str
    by_argument: Mapping[str, Flag]
    by_word: Mapping[str, Flag]

    def to_words(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Arguments as launch words, in their order; what is none is left out.

        Raises DocumentInvalid for an argument, or a value, that the release does not have.
        """
        return tuple(word for name, value in arguments.items() for word in self._words_of(name, value))

    def _words_of(self, name: str, value: Any) -> Iterator[str]:
        flag = self.by_argument.get(name)
        if flag is None:
            raise self._invalid(f"{self.engine} {self.release} has no argument {name}", name)
        self._check(flag, value)
        if value is None or (flag.kind == "switch" and value is False):
            return
        if flag.kind in ("switch", "boolean"):
            yield flag.word if value else f"--no-{flag.word.removeprefix('--')}"
            return
        yield flag.word
        for each in value if flag.kind == "list" else (value,):
            yield json.dumps(each, sort_keys=True) if isinstance(each, dict | list) else str(each)

    def from_words(self, words: Sequence[str]) -> tuple[Arguments, tuple[str, ...]]:
        """Launch words as arguments, and the words that no flag takes.  Raises DocumentInvalid."""
        arguments: Arguments = {}
        positional: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if not word.startswith("-"):
                positional.append(word)
                continue
            name, equals, value = word.partition("=")
            flag, path = self._flag(name)
            if flag.kind in ("switch", "boolean") and not equals:
                arguments[flag.argument] = not _negative(name)
                continue
            if not equals and not rest:
                raise self._invalid(f"{name} has no value", name)
            text = [value] if equals else [rest.pop(0)]
            while flag.kind == "list" and rest and not rest[0].startswith("-"):
                text.append(rest.pop(0))
            read = [_value(each) for each in text]
            self._check(flag, read if flag.kind == "list" else read[0])
            _set(arguments, (flag.argument, *path), read if flag.kind == "list" else read[0])
        return arguments, tuple(positional)

    def _flag(self, name: str) -> tuple[Flag, tuple[str, ...]]:
        """The flag of a word, and the path into its value (``--eplb-config.num_redundant_experts``)."""
        whole, *path = name.split(".")
        dashed = whole if not whole.startswith("--") else f"--{whole[2:].replace('_', '-')}"
        flag = self.by_word.get(whole) or self.by_word.get(dashed)
        if flag is None and dashed.startswith("--no-"):
            found = self.by_word.get(f"--{dashed.removeprefix('--no-')}")
            flag = found if found is not None and found.kind == "boolean" else None
        if flag is None:
            raise self._invalid(f"{self.engine} {self.release} has no flag {name}", name)
        return flag, tuple(path)

    def _check(self, flag: Flag, value: Any) -> None:
        for each in value if isinstance(value, list | tuple) else (value,):
            if flag.choices and each is not None and each not in _PLACES and str(each) not in flag.choices:
                raise self._invalid(f"{flag.word} takes {', '.join(flag.choices)}, not {each}", flag.word)

    def _invalid(self, what: str, where: str) -> DocumentInvalid:
        return DocumentInvalid(what, where=where, hint=f"see the flags of {self.engine} {self.release}")


def _negative(word: str) -> bool:
    return word.startswith("--no-") or word.startswith("--no_")


def _set(arguments: Arguments, path: tuple[str, ...], value: Any) -> None:
    *above, last = path
    for name in above:
        arguments = arguments.setdefault(name, {})
    arguments[last] = value


def _value(text: str) -> Any:
    """Numbers, JSON objects and lists as such, everything else as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, str) else value


@cache
def flag_table(room: Path, engine: str, release: str) -> FlagTable:
    """The snapshot of a release in an engine's room."""
    data = json.loads((room / f"flags_{release.replace('.', '_')}.json").read_text(encoding="utf-8"))
    flags = [
        Flag(name, tuple(each["words"]), each["kind"], tuple(each.get("choices", ())))
        for name, each in data["arguments"].items()
    ]
    return FlagTable(
        engine, release, {flag.argument: flag for flag in flags}, {word: flag for flag in flags for word in flag.words}
    )
