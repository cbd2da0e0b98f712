"""``--images`` and ``--audio-clips``: a number for every sample, or how it is distributed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.cli.sequences_flag import read_counts
from planner.errors import DocumentInvalid

SAID = (
    "a number, or a distribution: mean:3.2, quantiles as p50:1+p99:8, samples by their number as 0:120+1:400, or"
    " file:FILE (a number a line, or number and count)"
)


def items_of(text: str | None, flag: str, number: str, counts: str) -> dict[str, Any]:
    """The fields of a workload that ``text`` means: ``number`` or ``counts``; none where nothing is said.

    Raises DocumentInvalid for a negative number and a file that holds none; the workload checks the rest.
    """
    if text is None:
        return {}
    word = text.strip()
    if word.isascii() and word.isdigit() and len(word) <= 12:
        return {number: int(word)}
    if word.startswith("file:"):
        return {counts: {"histogram": sorted(read_counts(Path(word.removeprefix("file:")), flag, SAID).items())}}
    if ":" not in word:
        raise DocumentInvalid(f"{word[:40]!r} is no number of items", where=flag, hint=f"give {SAID}")
    return {counts: word}
