"""Many names of another project's keys, fields or packages, written as running text, in its order."""

from __future__ import annotations


def foreign_names(text: str) -> tuple[str, ...]:
    """The names, which blanks part."""
    return tuple(text.split())
