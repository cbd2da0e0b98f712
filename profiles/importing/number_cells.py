"""The number in a cell of a text file: finite and written plainly, or ValueError with the reason.

Python's own ``float`` also takes ``nan``, ``inf`` and ``1_000``, ``int`` takes digits of other scripts: none of these
is what a benchmark prints.
"""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?")
_SHOWN = 40


def finite_number(text: str, *, thousands: bool = False) -> float:
    """The number in ``text``; ``thousands`` also allows ``1,234.5``.  Raises ValueError."""
    plain = text.strip()
    if thousands and _THOUSANDS.fullmatch(plain):
        plain = plain.replace(",", "")
    if len(plain) > 400 or not _NUMBER.fullmatch(plain):
        raise ValueError(f"{shown(text)} is not a number")
    value = float(plain)
    if not math.isfinite(value):
        raise ValueError(f"{shown(text)} is too large for a number")
    return value


def whole_number(text: str, *, thousands: bool = False) -> int:
    """The whole number in ``text``; ``128.0`` and ``1e3`` are whole, ``1.5`` is not.  Raises ValueError."""
    plain = text.strip()
    if re.fullmatch(r"[-+]?[0-9]{1,19}", plain):
        return int(plain)
    value = finite_number(text, thousands=thousands)
    if value != int(value) or abs(value) >= 2**63:
        raise ValueError(f"{shown(text)} is not a whole number")
    return int(value)


def shown(text: str) -> str:
    """The text in quotes, cut where it is long: what an error message may repeat of a file's content."""
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}...'"


def json_number(value: object) -> float:
    """The finite number that a JSON value is (true and text are none).  Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{shown(str(value))} is not a number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("an integer is too large for a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a finite number")
    return number


def json_whole(value: object) -> int:
    """The whole number that a JSON value is; ``128.0`` is whole.  Raises ValueError."""
    number = json_number(value)
    if number != int(number) or abs(number) >= 2**62:
        raise ValueError(f"{number} is not a whole number")
    return int(number)
