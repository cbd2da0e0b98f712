"""Changing ``train_accelerate.py`` for models that are no decoders: text of the script for other text."""

from __future__ import annotations

from collections.abc import Iterable

_FILE = "train_accelerate.py.txt"


def with_pieces(script: str, pieces: Iterable[tuple[str, str]]) -> str:
    """The script with each piece, which stands there once, replaced.

    Raises ValueError where a piece is not there once: our own text has changed.
    """
    for piece, instead in pieces:
        if script.count(piece) != 1:
            raise ValueError(f"{_FILE} does not hold this once: {piece!r}")
        script = script.replace(piece, instead)
    return script


def with_spans(script: str, spans: Iterable[tuple[str, str, str]]) -> str:
    """The script with everything from the first text up to the second, which stays, replaced by the third.

    Raises ValueError as ``with_pieces``.
    """
    for first, last, instead in spans:
        before, found, rest = script.partition(first)
        _, again, after = rest.partition(last)
        if not found or not again or first in rest:
            raise ValueError(f"{_FILE} does not hold this span once: {first!r} to {last!r}")
        script = before + instead + last + after
    return script
