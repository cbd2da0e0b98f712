"""Sizes as DeepSpeed and others print them ("678.86 MB"): powers of 1024 under decimal names, two digits."""

from __future__ import annotations

import re

from profiles.importing.number_cells import finite_number

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
PRINTED_SIZE = r"\d+(?:\.\d+)?\s?(?:[KMGTPE]?B)"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s?([KMGTPE]?B)")


def printed_size_bytes(text: str) -> tuple[int, bool]:
    """(bytes, whether rounding was possible) of a printed size.  Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text[:30]}' is not a size")
    value, power = finite_number(match.group(1)), _UNITS.index(match.group(2))
    size = round(value * 1024**power)
    if size >= 2**62:
        raise ValueError(f"'{text[:30]}' is too large")
    return size, power > 0
