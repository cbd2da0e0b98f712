"""A table of the report, and how percentages are written in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table with its name for links, its title, and one sentence on how to read it."""

    name: str
    title: str
    sentence: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def percent(value: float | None, *, signed: bool = False, decimals: int = 0) -> str:
    """A fraction as a percentage; a dash where there is none."""
    if value is None:
        return "-"
    return f"{100 * value:+.{decimals}f} %" if signed else f"{100 * value:.{decimals}f} %"
