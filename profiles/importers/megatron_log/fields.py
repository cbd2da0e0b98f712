"""The parts of a log line between ``|``: ``name: value`` pairs and the numbers in them."""

from __future__ import annotations

import re

from profiles.importing.number_cells import finite_number, whole_number

_LEADING = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_EMPHASIS = " \t*`"
_HUMAN = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}
_HUMAN_NUMBER = re.compile(r"([0-9.]+(?:e[-+]?[0-9]+)?)([KMGBTP]?)")
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_BYTES_TEXT = re.compile(r"([0-9.]+) ?(TiB|GiB|MiB|KiB|B)\b")


def fields_of(text: str) -> dict[str, str]:
    """``a: 1 | b: 2`` as a dict; the first of a name wins, parts without ``: `` are left out.

    Stars and back-quotes around a part are a document's emphasis.
    """
    found: dict[str, str] = {}
    for part in text.split("|"):
        name, colon, value = part.partition(":")
        name = name.strip(_EMPHASIS)
        if colon and name:
            found.setdefault(name, value.strip(_EMPHASIS))
    return found


def first_number(text: str) -> float:
    """The number that ``text`` begins with: some forks print ``now/mean``.  Raises ValueError."""
    match = _LEADING.match(text.strip())
    return finite_number(match.group() if match else text)


def positive_whole(text: str) -> int | None:
    """The positive whole number that ``text`` begins with; None for anything else."""
    match = re.match(r"[0-9]{1,18}(?![\d.])", text.strip())
    number = whole_number(match.group()) if match else 0
    return number or None


def human_number(text: str) -> float:
    """``1.23K`` as 1230.0: three digits, so the value is rounded.  Raises ValueError."""
    match = _HUMAN_NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text[:40]}' is not a number such as 1.23K")
    return finite_number(match[1]) * _HUMAN[match[2]]


def bytes_of(text: str) -> int:
    """``40.10GiB`` in bytes.  Raises ValueError."""
    match = _BYTES_TEXT.match(text.strip())
    if match is None:
        raise ValueError(f"'{text[:40]}' is not a size such as 40.10GiB")
    return round(finite_number(match[1]) * _BYTES[match[2]])


def is_number(text: str) -> bool:
    """Whether ``text`` begins with a finite number."""
    try:
        first_number(text)
    except ValueError:
        return False
    return True
