"""Bars on a terminal, and symbols where it has them."""

from __future__ import annotations

import sys

from planner.cli.output import can_encode

BLOCKS = " ▏▎▍▌▋▊▉█"


def bar(fraction: float, width: int) -> str:
    """A horizontal bar of ``width`` cells; block characters where the terminal has them, else ``#`` and ``.``."""
    fraction = min(max(fraction, 0.0), 1.0)
    if not can_encode(BLOCKS, sys.stdout):
        filled = round(fraction * width)
        return "#" * filled + "." * (width - filled)
    eighths = round(fraction * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (BLOCKS[rest] if rest else "")).ljust(width, "░")


def symbol(fancy: str, plain: str) -> str:
    """``fancy`` where stdout can carry it, else ``plain``."""
    return fancy if can_encode(fancy, sys.stdout) else plain
