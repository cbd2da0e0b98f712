"""Quantities with units: "80 GiB", "400 Gbit/s" and "3 us" to bytes, bytes a second and seconds, and back.

Inside the program every number is in bytes, seconds and FLOPs; text with units exists at the doors only.
``GB`` is 10^9 bytes and ``GiB`` 2^30; ``b`` is a bit and ``B`` a byte, so ``400 Gbit/s = 50 GB/s``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal

from profiles.errors import DocumentInvalid

HOUR_S = 3600.0
_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY_PREFIX = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ns": 1e-9, "min": 60.0, "h": HOUR_S}
_QUANTITY = re.compile(r"\s*([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*\Z")
_SIZE = re.compile(r"([kKMGTPE]i?)?(B|byte|bytes|b|bit|bits)\Z")
_PER_SECOND = re.compile(r"(.*?)(?:/s|/sec|ps)\Z")
_FLOPS = re.compile(r"([kKMGTPE])?(?:FLOP/s|FLOPS|FLOPs/s|flop/s|OP/s)\Z")


def parse_bytes(text: str, where: str = "value") -> int:
    """Bytes in "80 GiB", "192 GB", "2 TiB" or a plain number.  Raises DocumentInvalid."""
    number, unit = _split(text, where, "80 GiB")
    scale = 1.0 if unit == "" else _size_in_bytes(unit)
    if scale is None or unit.rstrip("s").endswith(("b", "bit")):
        raise _unknown_unit(text, unit, where, "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB")
    return round(_exact(number, scale))


def parse_bytes_per_s(text: str, where: str = "value") -> float:
    """Bytes a second in "400 Gbit/s", "400 Gbps", "450 GB/s" or a plain number.  Raises DocumentInvalid.

    ``gbps`` in small letters is refused: nobody can tell bits from bytes.
    """
    number, unit = _split(text, where, "400 Gbit/s")
    if unit == "":
        return float(number)
    rate = _PER_SECOND.match(unit)
    scale = _size_in_bytes(rate.group(1)) if rate else None
    if scale is None:
        raise _unknown_unit(text, unit, where, "GB/s (bytes), Gbit/s or Gbps (bits), GiB/s")
    return _exact(number, scale)


def parse_seconds(text: str, where: str = "value") -> float:
    """Seconds in "3 us", "1.5 ms", "2 s" or a plain number.  Raises DocumentInvalid."""
    number, unit = _split(text, where, "3 us")
    if unit and unit not in _SECONDS:
        raise _unknown_unit(text, unit, where, "ns, us, ms, s, min or h")
    return _exact(number, _SECONDS.get(unit, 1.0))


def parse_flops_per_s(text: str, where: str = "value") -> float:
    """FLOPs a second in "989 TFLOP/s" or a plain number.  Raises DocumentInvalid."""
    number, unit = _split(text, where, "989 TFLOP/s")
    match = _FLOPS.match(unit)
    if unit and not match:
        raise _unknown_unit(text, unit, where, "GFLOP/s, TFLOP/s or PFLOP/s")
    return _exact(number, _PREFIX[match.group(1) or ""] if match else 1.0)


def quantity_parser(name: str) -> Callable[[str, str], float] | None:
    """The parser for a field called ``name``, by the unit that its name ends with; None if it has no unit."""
    for suffix, parser in (
        ("bytes_per_s", parse_bytes_per_s),
        ("flops_per_s", parse_flops_per_s),
        ("_bytes", parse_bytes),
        ("_s", parse_seconds),
    ):
        if name.endswith(suffix):
            return parser
    return None


def format_bytes(size_bytes: float) -> str:
    """Size for people in binary units: "79.2 GiB"."""
    return _scaled(size_bytes, 1024.0, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def format_bytes_per_s(bandwidth_bytes_per_s: float) -> str:
    """Bandwidth for people in decimal units: "450 GB/s"."""
    return _scaled(bandwidth_bytes_per_s, 1000.0, ("B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"))


def _split(text: str, where: str, example: str) -> tuple[Decimal, str]:
    match = _QUANTITY.match(text)
    if not match:
        raise DocumentInvalid(f"'{text}' is not a number with a unit", where=where, hint=f"write it like '{example}'")
    digits = match.group(1).replace("_", "")
    if not math.isfinite(float(digits)):
        raise DocumentInvalid(f"'{text}' is not a finite number", where=where, hint=f"write it like '{example}'")
    return Decimal(digits), match.group(2)


def _exact(number: Decimal, scale: float) -> float:
    """The product rounded once: "1.9 us" is the same number as 1.9e-6, which 1.9 * 1e-6 in floats is not."""
    return float(number * Decimal(repr(scale)))


def _size_in_bytes(unit: str) -> float | None:
    match = _SIZE.match(unit)
    if not match:
        return None
    prefix, base = match.group(1) or "", match.group(2)
    scale = _BINARY_PREFIX.get(prefix) or _PREFIX.get(prefix)
    if scale is None:
        return None
    return scale / 8 if base in ("b", "bit", "bits") else scale


def _unknown_unit(text: str, unit: str, where: str, known: str) -> DocumentInvalid:
    return DocumentInvalid(f"'{text}' has the unit '{unit}', which is not known here", where=where, hint=f"use {known}")


def _scaled(value: float, base: float, units: tuple[str, ...]) -> str:
    scaled, index = float(value), 0
    # 999.5 would print as "1000": move on to the next unit first.
    while abs(scaled) >= base * 0.9995 and index < len(units) - 1:
        scaled, index = scaled / base, index + 1
    return f"{_three_digits(scaled)} {units[index]}"


def _three_digits(value: float) -> str:
    size = abs(value)
    if size == 0 or size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
