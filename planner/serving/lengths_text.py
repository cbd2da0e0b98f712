"""Lengths of requests as text: ``4000``, ``100:8000``, ``mean:4000+spread:0.6``, ``p50:900+p90:4000+p99:9000``."""

from __future__ import annotations

import re

import numpy as np

from planner.serving.traffic import LONGEST_TOKENS, Lengths
from profiles.errors import DocumentInvalid
from profiles.validation import read_document

SHARES = 32
"""Equal shares of requests that percentiles are read as."""
HINT = "4000, 100:8000 (uniform), mean:4000+spread:0.6 (lognormal) or p50:900+p90:4000 (percentiles)"


def parse_lengths(text: str, where: str) -> Lengths:
    """The lengths that a text says.  Raises DocumentInvalid.

    Percentiles are joined by straight lines; below the first and above the last the length stays the same.
    """
    said = text.replace("_", "").replace(" ", "")
    if re.fullmatch(r"\d+(\.\d+)?", said):
        return read_document(Lengths, {"mean": float(said)}, where)
    if match := re.fullmatch(r"(\d+):(\d+)", said):
        return read_document(Lengths, {"kind": "uniform", "low": int(match[1]), "high": int(match[2])}, where)
    parts: dict[str, float] = {}
    for word in said.split("+"):
        match = re.fullmatch(r"(mean|spread|p\d+(?:\.\d+)?):(\d+(?:\.\d+)?)", word)
        if match is None or match[1] in parts:
            raise DocumentInvalid(f"{text!r} says no lengths", where=where, hint=HINT)
        parts[match[1]] = float(match[2])
    if set(parts) == {"mean", "spread"}:
        return read_document(Lengths, {"kind": "lognormal", **parts}, where)
    if "mean" in parts or "spread" in parts or not parts:
        raise DocumentInvalid(f"{text!r} says no lengths", where=where, hint=HINT)
    return _by_percentiles({float(name[1:]): value for name, value in parts.items()}, where)


def _by_percentiles(said: dict[float, float], where: str) -> Lengths:
    places = sorted(said)
    values = [said[place] for place in places]
    if (
        places[0] < 0
        or places[-1] > 100
        or values != sorted(values)
        or not 1 <= values[0] <= values[-1] <= LONGEST_TOKENS
    ):
        hint = f"percentiles from 0 to 100, with lengths that grow, from 1 to {LONGEST_TOKENS:,}"
        raise DocumentInvalid("the percentiles cannot be read", where=where, hint=hint)
    middles = (np.arange(SHARES) + 0.5) * 100.0 / SHARES
    tokens = np.rint(np.interp(middles, places, values)).astype(int)
    found, counts = np.unique(tokens, return_counts=True)
    if len(found) == 1:
        return Lengths(mean=float(found[0]))
    return Lengths(
        kind="table", tokens=tuple(int(each) for each in found), weights=tuple(float(each) for each in counts)
    )
