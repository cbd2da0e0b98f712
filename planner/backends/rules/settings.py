"""Settings in sections, as configuration files of several back-ends have them, and words that are laid over them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.errors import DocumentInvalid


def overridden(sections: dict[str, Any], words: Sequence[str], where: str) -> dict[str, str]:
    """Lay ``--section.key VALUE`` over the sections; gives the words that are none, such as ``--config NAME``.

    Raises DocumentInvalid for a word that no setting is in front of.
    """
    others: dict[str, str] = {}
    place = 0
    while place < len(words):
        name, equals, value = words[place].removeprefix("--").partition("=")
        if not words[place].startswith("--"):
            raise DocumentInvalid(f"{words[place]!r} stands behind no setting", where=where, hint="--section.key VALUE")
        place += 1
        if not equals and place < len(words) and not words[place].startswith("--"):
            value, equals = words[place], "="
            place += 1
        path = name.replace("-", "_").split(".")
        if len(path) == 1:
            others[path[0]] = value
            continue
        below = sections
        for part in path[:-1]:
            below = below.setdefault(part, {})
            if not isinstance(below, dict):
                raise DocumentInvalid(f"{part} is no section", where=where, hint="--section.key VALUE")
        if equals:
            below[path[-1]] = literal(value)
        else:
            below[path[-1].removeprefix("no_")] = not path[-1].startswith("no_")
    return others


def literal(text: str) -> Any:
    """A word of a command line as the value that it writes: a number, true or false, a list, else itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def flat_settings(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """``section.key`` and value of everything below; an empty section is a value."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from flat_settings(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
