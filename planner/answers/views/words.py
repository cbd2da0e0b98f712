"""Numbers for people: GiB, ms, k and M; short ids."""

from __future__ import annotations

import math

GIB = 2**30
TIB = 2**40


def gib(num_bytes: float) -> str:
    """``71.3 GiB``, or ``2.0 TiB`` from 1,024 GiB on."""
    if abs(num_bytes) >= TIB:
        return f"{num_bytes / TIB:,.1f} TiB"
    return f"{num_bytes / GIB:,.1f} GiB"


def seconds(value_s: float) -> str:
    """``5.81 s``, ``42.0 ms`` or ``310 us``: three digits in the unit that fits."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if abs(value_s) >= scale:
            value = value_s / scale
            return f"{value:,.{_decimals(value)}f} {unit}"
    return "0 s" if value_s == 0 else f"{value_s * 1e6:,.{_decimals(value_s * 1e6)}f} us"


def close_seconds(value_s: float) -> str:
    """``117.4 s``, ``5.812 s``, ``42.13 ms``: four digits, where two close step times stand beside each other."""
    value, unit = (value_s, "s") if abs(value_s) >= 1 else (value_s * 1e3, "ms")
    places = 3 - int(math.log10(max(abs(value), 1.0)))
    return f"{value:,.{max(places, 0)}f} {unit}"


def count(value: float) -> str:
    """``722 k``, ``1.45 M``."""
    for scale, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= scale:
            scaled = value / scale
            return f"{scaled:,.{_decimals(scaled)}f}{unit}"
    return f"{value:,.{_decimals(value)}f}" if value != int(value) else f"{int(value)}"


def digits(value: float) -> str:
    """A bare number with about three significant digits: ``1,015``, ``6.20``."""
    return f"{value:,.{_decimals(value)}f}"


def money(amount: float) -> str:
    """``1,234.50``, or three significant digits below one: ``0.00517``."""
    return f"{amount:,.2f}" if abs(amount) >= 1 else f"{amount:.3g}"


def percent(fraction: float, *, signed: bool = False) -> str:
    """``47.9 %``; with a sign where a change is shown."""
    # A change that rounds to nothing has no sign.
    shown = round(fraction * 100, 1) or 0.0
    return f"{shown:{'+' if signed and shown else ''}.1f} %"


def short_id(identity: str) -> str:
    """The first 12 digits of a content hash: enough to name a plan."""
    return identity[:12]


def _decimals(value: float) -> int:
    """Decimals that leave about three significant digits."""
    magnitude = abs(value)
    return 0 if magnitude >= 100 else 1 if magnitude >= 10 else 2
