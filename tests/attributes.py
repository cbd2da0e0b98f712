"""Several attributes of one object at once, so that a row of a file is one assertion."""

from __future__ import annotations

from typing import Any


def of(thing: Any, *names: str) -> list[Any]:
    """The attributes called ``names``; dots go deeper (``timing.time_s``), a name in brackets reads a mapping."""
    return [_attribute(thing, name) for name in names]


def _attribute(thing: Any, name: str) -> Any:
    for part in name.split("."):
        thing = thing[part[1:-1]] if part.startswith("[") else getattr(thing, part)
    return thing
