"""Spelling: the known word that a person probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from profiles.spelling import nearest_name

MOST_SHOWN = 40


def did_you_mean(word: str, known: Iterable[str], *, fallback: str | None = None) -> str:
    """``did you mean 'x'?`` for the nearest known word, else ``fallback``, else the list of what is known."""
    names = list(dict.fromkeys(known))
    match = nearest_name(word, names)
    if match is not None:
        return f"did you mean '{match}'?"
    if fallback is not None:
        return fallback
    more = f", and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return "known: " + ", ".join(names[:MOST_SHOWN]) + more
